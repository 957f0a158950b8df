// SPDX-License-Identifier: Apache-2.0
// measure_alphas [-n N] TARGET TEXTS DRAFTER...: how often a drafted token is accepted at each
// position of a chain of five, given that all before it are. This is the n-alpha of Li et al.
// ("EAGLE", 2024, section 4.1) for a feature head, whose n-th token reads n features of its own. A
// drafter is a spec, or the path of a model; texts as for measure_drafters.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tools/measured_texts.h"

namespace outrider {
namespace {

constexpr std::size_t kTexts = 200;
constexpr std::size_t kLength = 5;

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::vector<std::vector<TokenId>>& prompts, double temperature) {
  SpeculationOptions speculation = drafting_with(drafter);
  speculation.tree = "chain:length=" + std::to_string(kLength);
  Generator generator(model, speculation);
  // By position in the chain, one entry per text.
  std::vector<std::vector<double>> reached(kLength);
  std::vector<std::vector<double>> stood(kLength);
  std::vector<double> emitted;
  std::vector<double> passes;
  for (const GenerateResult& text : continue_texts(generator, prompts, temperature)) {
    emitted.push_back(static_cast<double>(text.statistics.emitted));
    passes.push_back(static_cast<double>(text.statistics.target_passes));
    for (std::size_t place = 0; place < kLength; ++place) {
      reached[place].push_back(0);
      stood[place].push_back(0);
    }
    int n_left = kContinuedTokens;
    for (const int n_accepted : text.accepted_per_round) {
      // The token after a draft must fit, too.
      for (int place = 0; place <= n_accepted && place < n_left - 1; ++place) {
        if (place == static_cast<int>(kLength)) break;
        reached[static_cast<std::size_t>(place)].back() += 1;
        if (place < n_accepted) stood[static_cast<std::size_t>(place)].back() += 1;
      }
      n_left -= n_accepted + 1;
    }
  }
  const Ratio tau = ratio_of(emitted, passes);
  std::printf("| %g | `%s` | %.3f ± %.3f |", temperature, drafter, tau.value, tau.half_width);
  for (std::size_t place = 0; place < kLength; ++place) {
    // Never reached, or beyond the drafter's longest draft.
    if (std::accumulate(stood[place].begin(), stood[place].end(), 0.0) == 0) {
      std::printf(" – |");
      continue;
    }
    const Ratio alpha = ratio_of(stood[place], reached[place]);
    std::printf(" %.3f ± %.3f |", alpha.value, alpha.half_width);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void measure_all(const DraftersMeasurement& measurement) {
  const auto texts = texts_of(measurement);
  std::printf(
      "| temperature | drafter | tau | 0-alpha | 1-alpha | 2-alpha | 3-alpha | 4-alpha "
      "|\n|---|---|---|---|---|---|---|---|\n");
  for_each_setting(measurement, [&](const char* drafter, double temperature) {
    measure(measurement.target, drafter, texts, temperature);
  });
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  return outrider::measure_drafters_of(n_arguments, arguments, "measure_alphas", "TEXTS",
                                       outrider::kTexts, outrider::measure_all);
}
