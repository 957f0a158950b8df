// measure_trees TARGET DRAFTER TEXTS [N]: tokens per target pass for chains and trees with equally
// many nodes, as the table in docs/drafters.md.
//
// TEXTS holds texts separated by <|endoftext|>; the beginning of each of the first N (default 80)
// is continued by 96 tokens, end tokens or not. Text i has the seed i under every configuration.
// tau is all tokens over all passes; its 95 % interval comes from the variance between texts, by
// linearisation: with e_i = tokens_i - tau * passes_i, the variance of tau is about
// n / (n - 1) * sum e_i^2 / (sum passes_i)^2.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider {
namespace {

constexpr int kTokens = 96;
constexpr std::size_t kPromptTokens = 24;
constexpr std::size_t kTextsAtOnce = 20;

struct Configuration {
  const char* tree;
  const char* verify;
  double temperature;
};

// Chains and trees of 6, 14, 25 and 63 nodes.
std::vector<Configuration> configurations() {
  constexpr const char* kTrees[] = {
      "chain:length=6",  "widths:2,1,1",  "dynamic:total=6,depth=6,topk=3",
      "chain:length=14", "widths:2,2,2",  "dynamic:total=14,depth=7,topk=6",
      "chain:length=25", "static:eagle1", "dynamic:total=25,depth=7,topk=10",
      "chain:length=63", "static:medusa", "dynamic:total=63,depth=9,topk=10"};
  std::vector<Configuration> all;
  for (const char* tree : kTrees) all.push_back({tree, "exact", 0});
  for (const char* verify : {"exact", "traversal", "coupled"}) {
    for (const char* tree : kTrees) all.push_back({tree, verify, 1});
  }
  return all;
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

void measure(const std::shared_ptr<const Model>& model, const char* drafter,
             const std::vector<std::vector<TokenId>>& prompts, const Configuration& configuration) {
  Generator generator(model, {.drafter = std::string("model:") + drafter,
                              .tree = configuration.tree,
                              .verify = configuration.verify,
                              .drafter_options = {.threads = 1}});
  std::vector<GenerateStatistics> texts;
  for (std::size_t first = 0; first < prompts.size(); first += kTextsAtOnce) {
    std::vector<GenerateRequest> requests;
    for (std::size_t i = first; i < std::min(first + kTextsAtOnce, prompts.size()); ++i) {
      requests.push_back({.prompt = prompts[i],
                          .options = {.max_tokens = kTokens,
                                      .sampling = {.temperature = configuration.temperature},
                                      .seed = i,
                                      .ignore_eos = true}});
    }
    for (const GenerateResult& result : generator.generate(requests)) {
      texts.push_back(result.statistics);
    }
  }
  double tokens = 0;
  double passes = 0;
  double drafted = 0;
  double accepted = 0;
  for (const GenerateStatistics& text : texts) {
    tokens += static_cast<double>(text.emitted);
    passes += static_cast<double>(text.target_passes);
    drafted += static_cast<double>(text.drafted);
    accepted += static_cast<double>(text.accepted);
  }
  const double tau = tokens / passes;
  double squares = 0;
  for (const GenerateStatistics& text : texts) {
    squares += std::pow(
        static_cast<double>(text.emitted) - tau * static_cast<double>(text.target_passes), 2);
  }
  const auto n = static_cast<double>(texts.size());
  const double half_width = 1.96 * std::sqrt(n / (n - 1) * squares) / passes;
  std::printf("| %g | `%s` | %s | %.1f | %.3f | %.3f ± %.3f |\n", configuration.temperature,
              configuration.tree, configuration.verify, drafted / passes, accepted / drafted, tau,
              half_width);
  std::fflush(stdout);
}

int run(std::span<char*> arguments) {
  if (arguments.size() < 4 || arguments.size() > 5) {
    std::fprintf(stderr, "usage: measure_trees TARGET DRAFTER TEXTS [N]\n");
    return 2;
  }
  const auto model = Model::load(arguments[1], {.threads = 1});
  const std::size_t n_texts = arguments.size() == 5 ? std::strtoul(arguments[4], nullptr, 10) : 80;
  const auto prompts = read_prompts(arguments[3], *model, n_texts);
  if (prompts.size() < 2) {
    std::fprintf(stderr, "measure_trees: fewer than two texts\n");
    return 1;
  }
  std::printf("| temperature | tree | verification | nodes a pass | accepted | tau |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Configuration& configuration : configurations()) {
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
