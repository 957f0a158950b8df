// SPDX-License-Identifier: Apache-2.0
// measure_drafters [-n N] TARGET TEXTS DRAFTER...: how well drafters draft for a target, as in the
// tables of docs/training.md and docs/drafters.md. A drafter is a spec, or the path of a model. The
// beginnings of N texts (200) are continued at temperatures 0 and 1 with drafts of the drafter's
// own shape (models: chains of five). The acceptance rate and tau have 95 % intervals from the
// variance between texts.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

#include "tools/measured_texts.h"

namespace outrider {
namespace {

constexpr std::size_t kTexts = 200;

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::vector<std::vector<TokenId>>& prompts, double temperature) {
  Generator generator(model, drafting_with(drafter));
  std::vector<double> emitted;
  std::vector<double> passes;
  std::vector<double> drafted;
  std::vector<double> accepted;
  for (const GenerateResult& result : continue_texts(generator, prompts, temperature)) {
    const GenerateStatistics& text = result.statistics;
    emitted.push_back(static_cast<double>(text.emitted));
    passes.push_back(static_cast<double>(text.target_passes));
    drafted.push_back(static_cast<double>(text.drafted));
    accepted.push_back(static_cast<double>(text.accepted));
  }
  const Ratio acceptance = ratio_of(accepted, drafted);
  const Ratio tau = ratio_of(emitted, passes);
  const Ratio nodes = ratio_of(drafted, passes);
  std::printf("| %g | %s | %.1f | %.3f ± %.3f | %.3f ± %.3f |\n", temperature, drafter, nodes.value,
              acceptance.value, acceptance.half_width, tau.value, tau.half_width);
  std::fflush(stdout);
}

void measure_all(const DraftersMeasurement& measurement) {
  const auto texts = texts_of(measurement);
  std::printf(
      "| temperature | drafter | drafted a pass | accepted of drafted | tau "
      "|\n|---|---|---|---|---|\n");
  for_each_setting(measurement, [&](const char* drafter, double temperature) {
    measure(measurement.target, drafter, texts, temperature);
  });
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  return outrider::measure_drafters_of(n_arguments, arguments, "measure_drafters", "TEXTS",
                                       outrider::kTexts, outrider::measure_all);
}
