// SPDX-License-Identifier: Apache-2.0
// measure_prompts [-n N] TARGET QUESTIONS DRAFTER...: drafters side by side on several kinds of
// prompts, as in the table of docs/drafters.md. QUESTIONS is Spec-Bench's question.jsonl or a file
// of that form: JSON objects with a "category" and "turns", of which the first is asked. From each
// kind N (40) prompts, evenly spaced, are cut to their first 128 tokens and continued by 96 tokens,
// with drafts of the drafter's own shape. A drafter is a spec, or the path of a model.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "tools/measured_texts.h"

namespace outrider {
namespace {

constexpr std::size_t kOfAKind = 40;
constexpr std::size_t kPromptTokens = 128;

using Prompts = std::vector<std::vector<TokenId>>;

// The first eight categories of Spec-Bench are MT-Bench's and count as one kind: conversation.
std::string kind_of(const std::string& category) {
  static const std::map<std::string, std::string> own = {{"translation", "translation"},
                                                         {"summarization", "summary"},
                                                         {"qa", "question"},
                                                         {"math_reasoning", "mathematics"},
                                                         {"rag", "with documents"}};
  const auto found = own.find(category);
  return found == own.end() ? "conversation" : found->second;
}

std::map<std::string, Prompts> read_questions(const char* file, const Model& model,
                                              std::size_t n_of_a_kind) {
  std::map<std::string, std::vector<std::string>> texts;
  std::ifstream stream(file);
  if (!stream) throw Error("read questions", file, "a readable file", "none");
  for (std::string line; std::getline(stream, line);) {
    const nlohmann::json question = nlohmann::json::parse(line);
    texts[kind_of(question.at("category"))].push_back(question.at("turns").at(0));
  }
  std::map<std::string, Prompts> prompts;
  for (const auto& [kind, all] : texts) {
    const std::size_t n = std::min(n_of_a_kind, all.size());
    for (std::size_t i = 0; i < n; ++i) {
      std::vector<TokenId> tokens = model.tokenizer().encode(all[i * all.size() / n], true);
      tokens.resize(std::min(tokens.size(), kPromptTokens));
      prompts[kind].push_back(std::move(tokens));
    }
  }
  return prompts;
}

// Totals over all texts of one kind, or of several kinds.
struct Sums {
  std::vector<double> emitted;
  std::vector<double> passes;
  double drafted = 0;
  double drafter_passes = 0;
  double draft_seconds = 0;
  double seconds = 0;

  void add(const GenerateStatistics& text) {
    emitted.push_back(static_cast<double>(text.emitted));
    passes.push_back(static_cast<double>(text.target_passes));
    drafted += static_cast<double>(text.drafted);
    drafter_passes += static_cast<double>(text.drafter_passes);
    draft_seconds += text.draft_seconds;
    seconds += text.decode_seconds;
  }
  double n_passes() const {
    double sum = 0;
    for (const double n : passes) sum += n;
    return sum;
  }
};

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::map<std::string, Prompts>& prompts, double temperature) {
  Generator generator(model, drafting_with(drafter));
  Sums whole;
  std::string of_kinds;
  for (const auto& [kind, texts] : prompts) {
    Sums sums;
    for (const GenerateResult& text : continue_texts(generator, texts, temperature)) {
      sums.add(text.statistics);
      whole.add(text.statistics);
    }
    of_kinds += fmt::format(" {:.2f} |", ratio_of(sums.emitted, sums.passes).value);
  }
  const Ratio tau = ratio_of(whole.emitted, whole.passes);
  std::cout << fmt::format(
                   "| {} | `{}` |{} {:.3f} ± {:.3f} | {:.0f} | {:.1f} | {:.2f} | {:.0f} % |\n",
                   temperature, drafter, of_kinds, tau.value, tau.half_width, whole.n_passes(),
                   whole.drafted / whole.n_passes(), whole.drafter_passes / whole.n_passes(),
                   100 * whole.draft_seconds / whole.seconds)
            << std::flush;
}

void measure_all(const DraftersMeasurement& measurement) {
  const auto prompts = read_questions(measurement.file, *measurement.target, measurement.n);
  if (prompts.empty()) throw Error("read questions", measurement.file, "questions", "none");
  std::cout << "| temperature | drafter |";
  for (const auto& [kind, texts] : prompts) std::cout << ' ' << kind << " |";
  std::cout
      << " all: tau | passes | drafted a pass | drafter passes a pass | time in drafting |\n|";
  for (std::size_t column = 0; column < prompts.size() + 7; ++column) std::cout << "---|";
  std::cout << '\n';
  for_each_setting(measurement, [&](const char* drafter, double temperature) {
    measure(measurement.target, drafter, prompts, temperature);
  });
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  return outrider::measure_drafters_of(n_arguments, arguments, "measure_prompts", "QUESTIONS",
                                       outrider::kOfAKind, outrider::measure_all);
}
