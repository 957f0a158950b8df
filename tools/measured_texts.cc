// SPDX-License-Identifier: Apache-2.0
#include "tools/measured_texts.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::size_t kPromptTokens = 24;
constexpr std::size_t kTextsAtOnce = 20;

}  // namespace

int measure_drafters_of(int n_arguments, char** arguments, const char* name, const char* file,
                        std::size_t n,
                        const std::function<void(const DraftersMeasurement&)>& measure) {
  std::span<char*> rest(arguments, static_cast<std::size_t>(n_arguments));
  if (rest.size() > 2 && rest[1] == std::string_view("-n")) {
    n = std::strtoul(rest[2], nullptr, 10);
    rest = rest.subspan(2);
  }
  if (rest.size() < 4 || n == 0) {
    std::fprintf(stderr, "usage: %s [-n N] TARGET %s DRAFTER...\n", name, file);
    return 2;
  }
  try {
    measure({.target = Model::load(rest[1], {.threads = 1}),
             .file = rest[2],
             .n = n,
             .drafters = rest.subspan(3)});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

std::vector<std::vector<TokenId>> texts_of(const DraftersMeasurement& measurement) {
  auto texts = read_prompts(measurement.file, *measurement.target, measurement.n);
  if (texts.size() < 2) throw Error("read texts", measurement.file, "two texts or more", "fewer");
  return texts;
}

void for_each_setting(const DraftersMeasurement& measurement,
                      const std::function<void(const char* drafter, double temperature)>& measure) {
  for (const double temperature : {0.0, 1.0}) {
    for (const char* drafter : measurement.drafters) measure(drafter, temperature);
  }
}

SpeculationOptions drafting_with(const char* drafter) {
  const bool is_path = std::filesystem::exists(drafter);
  return {.drafter = is_path ? std::string("model:") + drafter : drafter,
          .drafter_options = {.threads = 1}};
}

std::vector<std::vector<TokenId>> read_prompts(const char* file, const Model& model,
                                               std::size_t n_texts) {
  std::ifstream stream(file);
  const std::string all{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::string_view kEnd = "<|endoftext|>";
  std::vector<std::vector<TokenId>> prompts;
  for (std::size_t begin = 0; begin < all.size() && prompts.size() < n_texts;) {
    const std::size_t end = std::min(all.find(kEnd, begin), all.size());
    const std::string text = all.substr(begin, std::min<std::size_t>(end - begin, 300));
    std::vector<TokenId> tokens = model.tokenizer().encode(text, true);
    if (tokens.size() > kPromptTokens) {
      tokens.resize(kPromptTokens);
      prompts.push_back(std::move(tokens));
    }
    begin = end + kEnd.size();
  }
  return prompts;
}

std::vector<GenerateResult> continue_texts(Generator& generator,
                                           const std::vector<std::vector<TokenId>>& prompts,
                                           double temperature, std::size_t first_seed) {
  std::vector<GenerateResult> texts;
  for (std::size_t first = 0; first < prompts.size(); first += kTextsAtOnce) {
    std::vector<GenerateRequest> requests;
    for (std::size_t i = first; i < std::min(first + kTextsAtOnce, prompts.size()); ++i) {
      requests.push_back({.prompt = prompts[i],
                          .options = {.max_tokens = kContinuedTokens,
                                      .sampling = {.temperature = temperature},
                                      .seed = first_seed + i,
                                      .ignore_eos = true}});
    }
    for (GenerateResult& result : generator.generate(requests)) {
      texts.push_back(std::move(result));
    }
  }
  return texts;
}

Ratio ratio_of(const std::vector<double>& numerators, const std::vector<double>& denominators) {
  double numerator = 0;
  double denominator = 0;
  for (const double value : numerators) numerator += value;
  for (const double value : denominators) denominator += value;
  const double ratio = numerator / denominator;
  double squares = 0;
  for (std::size_t i = 0; i < numerators.size(); ++i) {
    squares += std::pow(numerators[i] - ratio * denominators[i], 2);
  }
  const auto n = static_cast<double>(numerators.size());
  return {ratio, 1.96 * std::sqrt(n / (n - 1) * squares) / denominator};
}

}  // namespace outrider
