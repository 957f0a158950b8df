// SPDX-License-Identifier: Apache-2.0
// Shared by measuring tools: their arguments, beginnings of texts that a generator continues, and
// statistics of the results.
#ifndef OUTRIDER_TOOLS_MEASURED_TEXTS_H_
#define OUTRIDER_TOOLS_MEASURED_TEXTS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider {

// The arguments of a program called as "NAME [-n N] TARGET FILE DRAFTER...".
struct DraftersMeasurement {
  std::shared_ptr<const Model> target;
  const char* file = nullptr;
  std::size_t n = 0;
  std::span<char*> drafters;  // each a spec, or the path of a model
};

// Reads the arguments (`n` is the default; `file` is the name of FILE in the usage), measures, and
// returns the program's exit status: 2 for wrong arguments, 1 for an error, either with a line on
// stderr.
int measure_drafters_of(int n_arguments, char** arguments, const char* name, const char* file,
                        std::size_t n,
                        const std::function<void(const DraftersMeasurement&)>& measure);

// The measurement's texts, at least two. Throws Error.
std::vector<std::vector<TokenId>> texts_of(const DraftersMeasurement& measurement);

// Calls measure for every drafter, at temperature 0, then at 1.
void for_each_setting(const DraftersMeasurement& measurement,
                      const std::function<void(const char* drafter, double temperature)>& measure);

// Options for a drafter of one thread.
SpeculationOptions drafting_with(const char* drafter);

// The first 24 tokens of each of the first n_texts texts of a file, in which <|endoftext|>
// separates texts.
std::vector<std::vector<TokenId>> read_prompts(const char* file, const Model& model,
                                               std::size_t n_texts);

// Continues every prompt by kContinuedTokens tokens, past end tokens. Text i has the seed
// first_seed + i.
inline constexpr int kContinuedTokens = 96;
std::vector<GenerateResult> continue_texts(Generator& generator,
                                           const std::vector<std::vector<TokenId>>& prompts,
                                           double temperature, std::size_t first_seed = 0);

// The ratio of two sums over texts. The 95 % interval comes from the variance between texts, by
// linearisation: with e_i = numerator_i - ratio * denominator_i, the variance of the ratio is about
// n / (n - 1) * sum e_i^2 / (sum denominator_i)^2.
struct Ratio {
  double value = 0;
  double half_width = 0;
};
Ratio ratio_of(const std::vector<double>& numerators, const std::vector<double>& denominators);

}  // namespace outrider

#endif  // OUTRIDER_TOOLS_MEASURED_TEXTS_H_
