// SPDX-License-Identifier: Apache-2.0
// measure_trees [-e] TARGET DRAFTER TEXTS [N [TREE...]]: tokens per target pass for chains and
// trees, and the drafting time per pass, as in the tables of docs/drafters.md. DRAFTER is a spec
// (model:PATH). Without trees, those of the first table are measured: each group has equally many
// nodes. -e: at temperature 1 only the verification `exact`.
//
// TEXTS holds texts separated by <|endoftext|>. The first N (default 80) are used, in the same way
// and with the same seeds under every configuration (measured_texts.h).
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/measured_texts.h"

namespace outrider {
namespace {

struct Configuration {
  std::string tree;
  const char* verify;
  double temperature;
};

// Chains and trees of 6, 14, 25 and 63 nodes.
const std::vector<std::string> kTrees = {
    "chain:length=6",  "widths:2,1,1",  "dynamic:total=6,depth=6,topk=3",
    "chain:length=14", "widths:2,2,2",  "dynamic:total=14,depth=7,topk=6",
    "chain:length=25", "static:eagle1", "dynamic:total=25,depth=7,topk=10",
    "chain:length=63", "static:medusa", "dynamic:total=63,depth=9,topk=10"};

std::vector<Configuration> configurations(const std::vector<std::string>& trees, bool exact_alone) {
  std::vector<Configuration> all;
  all.reserve(4 * trees.size());
  for (const std::string& tree : trees) all.push_back({tree, "exact", 0});
  for (const char* verify : {"exact", "traversal", "coupled"}) {
    if (exact_alone && std::string_view(verify) != "exact") continue;
    for (const std::string& tree : trees) all.push_back({tree, verify, 1});
  }
  return all;
}

// The drafting time per pass of the target, for texts run one by one: in a batch several texts
// share the time.
double draft_microseconds(Generator& generator, const std::vector<std::vector<TokenId>>& prompts,
                          double temperature) {
  constexpr std::size_t kTimedTexts = 10;
  double seconds = 0;
  double n_passes = 0;
  for (std::size_t i = 0; i < std::min(kTimedTexts, prompts.size()); ++i) {
    const GenerateStatistics text =
        continue_texts(generator, {prompts[i]}, temperature, i).front().statistics;
    seconds += text.draft_seconds;
    n_passes += static_cast<double>(text.target_passes);
  }
  return seconds / n_passes * 1e6;
}

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::vector<std::vector<TokenId>>& prompts, const Configuration& configuration) {
  Generator generator(model, {.drafter = drafter,
                              .tree = configuration.tree,
                              .verify = configuration.verify,
                              .drafter_options = {.threads = 1}});
  std::vector<double> emitted;
  std::vector<double> passes;
  double drafted = 0;
  double accepted = 0;
  double n_passes = 0;
  for (const GenerateResult& result :
       continue_texts(generator, prompts, configuration.temperature)) {
    const GenerateStatistics& text = result.statistics;
    emitted.push_back(static_cast<double>(text.emitted));
    passes.push_back(static_cast<double>(text.target_passes));
    drafted += static_cast<double>(text.drafted);
    accepted += static_cast<double>(text.accepted);
    n_passes += passes.back();
  }
  const Ratio tau = ratio_of(emitted, passes);
  std::printf("| %g | `%s` | %s | %.1f | %.3f | %.3f ± %.3f | %.0f |\n", configuration.temperature,
              configuration.tree.c_str(), configuration.verify, drafted / n_passes,
              accepted / drafted, tau.value, tau.half_width,
              draft_microseconds(generator, prompts, configuration.temperature));
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  const bool exact_alone = arguments.size() > 1 && std::string_view(arguments[1]) == "-e";
  if (exact_alone) arguments = arguments.subspan(1);
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: measure_trees [-e] TARGET DRAFTER TEXTS [N [TREE...]]\n");
    return 2;
  }
  const auto model = Model::load(arguments[1], {.threads = 1});
  const std::size_t n_texts = arguments.size() > 4 ? std::strtoul(arguments[4], nullptr, 10) : 80;
  const auto prompts = read_prompts(arguments[3], *model, n_texts);
  if (prompts.size() < 2) {
    std::fprintf(stderr, "measure_trees: fewer than two texts\n");
    return 1;
  }
  std::printf(
      "| temperature | tree | verification | nodes a pass | accepted | tau | drafting, µs a pass "
      "|\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  const std::vector<std::string> trees(
      arguments.begin() + std::min<std::size_t>(arguments.size(), 5), arguments.end());
  for (const Configuration& configuration :
       configurations(trees.empty() ? kTrees : trees, exact_alone)) {
    measure(model, arguments[2], prompts, configuration);
  }
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  try {
    return outrider::run({arguments, static_cast<std::size_t>(n_arguments)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "measure_trees: %s\n", error.what());
    return 1;
  }
}
