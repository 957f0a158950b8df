// measure_drafters TARGET TEXTS DRAFTER...: how well drafters draft for a target, as the tables in
// docs/training.md and docs/drafters.md. A drafter is a spec, or the path of a model. The
// beginnings of 200 texts are continued at temperature 0 and 1 with drafts of the drafter's own
// shape (models: chains of five); the acceptance rate and tau come with 95 % intervals from the
// variance between texts.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/measured_texts.h"

namespace outrider {
namespace {

constexpr std::size_t kTexts = 200;

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::vector<std::vector<TokenId>>& prompts, double temperature) {
  const bool is_path = std::filesystem::exists(drafter);
  Generator generator(model, {.drafter = is_path ? std::string("model:") + drafter : drafter,
                              .drafter_options = {.threads = 1}});
  std::vector<double> emitted;
  std::vector<double> passes;
  std::vector<double> drafted;
  std::vector<double> accepted;
  for (const GenerateStatistics& text : continue_texts(generator, prompts, temperature)) {
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

int run(std::span<char*> arguments) {
  if (arguments.size() < 4) {
    std::fprintf(stderr, "usage: measure_drafters TARGET TEXTS DRAFTER...\n");
    return 2;
  }
  const auto model = Model::load(arguments[1], {.threads = 1});
  const auto prompts = read_prompts(arguments[2], *model, kTexts);
  if (prompts.size() < 2) {
    std::fprintf(stderr, "measure_drafters: fewer than two texts\n");
    return 1;
  }
  std::printf(
      "| temperature | drafter | drafted a pass | accepted of drafted | tau "
      "|\n|---|---|---|---|---|\n");
  for (const double temperature : {0.0, 1.0}) {
    for (const char* drafter : arguments.subspan(3)) {
      measure(model, drafter, prompts, temperature);
    }
  }
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  try {
    return outrider::run({arguments, static_cast<std::size_t>(n_arguments)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "measure_drafters: %s\n", error.what());
    return 1;
  }
}
