// SPDX-License-Identifier: Apache-2.0
// measure_speed [-n N] [-r ROUNDS] [-t THREADS] TARGET TEXTS WAY...: the speed-up of drafted over
// plain decoding, as a Markdown table. A way of drafting is DRAFTER[@TREE[@VERIFICATION]]. DRAFTER
// is a spec, or the path of a model; it cannot contain "@". TEXTS is a file in
// which <|endoftext|> separates texts (measured_texts.h).
//
// In every round each of N (20) texts is continued by kContinuedTokens tokens, plainly and then in
// every way. All rounds run at temperature 0, then at 1. A round's speed-up is the time of plain
// decoding over that of the way, both summed over the texts, without prefill. The result is the
// median of ROUNDS (7). THREADS: the target's; 0 (the default) uses every processor. A drafter has
// one thread.
//
// The exit status is 2 for wrong arguments and 1 for an error. It is an error if a way gives other
// tokens than plain decoding at temperature 0.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "tools/measured_texts.h"

namespace outrider {
namespace {

struct Settings {
  std::size_t n_texts = 20;
  int n_rounds = 7;
  int n_threads = 0;
};

// Plain decoding, or one way of drafting.
struct Way {
  std::string name;
  Generator generator;
  std::vector<double> seconds;  // of decoding all texts, one value per round
  double emitted = 0;           // tokens, in all rounds
  double passes = 0;            // of the target, without prefill, in all rounds
};

// DRAFTER[@TREE[@VERIFICATION]].
SpeculationOptions speculation_of(const std::string& way) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= way.size();) {
    const std::size_t end = std::min(way.find('@', begin), way.size());
    parts.push_back(way.substr(begin, end - begin));
    begin = end + 1;
  }
  SpeculationOptions speculation = drafting_with(parts[0].c_str());
  if (parts.size() > 1) speculation.tree = parts[1];
  if (parts.size() > 2) speculation.verify = parts[2];
  if (parts.size() > 3) throw UsageError("way", way, "DRAFTER[@TREE[@VERIFICATION]]", "more");
  return speculation;
}

// Continues one text in one way and adds its time to the current round. Returns its tokens.
std::vector<TokenId> run(Way& way, const std::vector<TokenId>& prompt, std::size_t seed,
                         double temperature) {
  const std::vector<std::vector<TokenId>> alone = {prompt};
  GenerateResult text = std::move(continue_texts(way.generator, alone, temperature, seed)[0]);
  way.seconds.back() += text.statistics.decode_seconds;
  way.emitted += static_cast<double>(text.statistics.emitted);
  way.passes += static_cast<double>(text.statistics.target_passes);
  return std::move(text.ids);
}

// Of an even number of values: the larger of the middle two.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Prints the way's row. tau is the number of tokens per pass of the target; the speed-up is a
// median over rounds, with the least and the largest.
void report(const Way& way, const Way& plain, double temperature) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < way.seconds.size(); ++round) {
    ratios.push_back(plain.seconds[round] / way.seconds[round]);
  }
  const auto bounds = std::minmax_element(ratios.begin(), ratios.end());
  const double tokens_per_round = way.emitted / static_cast<double>(way.seconds.size());
  std::printf("| %g | %s | %.2f | %.0f | %.2f (%.2f to %.2f) |\n", temperature, way.name.c_str(),
              way.emitted / way.passes, tokens_per_round / median(way.seconds), median(ratios),
              *bounds.first, *bounds.second);
  std::fflush(stdout);
}

void measure(const Settings& settings, const char* target, const char* texts,
             std::span<char*> names) {
  const auto model = Model::load(target, {.threads = settings.n_threads});
  const auto prompts = read_prompts(texts, *model, settings.n_texts);
  if (prompts.empty()) throw Error("read texts", texts, "a text or more", "none");
  std::printf("| temperature | drafter | tau | tokens/s | times plain decoding |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const double temperature : {0.0, 1.0}) {
    std::vector<Way> ways;
    ways.push_back({.name = "plain", .generator = Generator(model), .seconds = {}});
    for (const char* name : names) {
      ways.push_back({.name = '`' + std::string(name) + '`',
                      .generator = Generator(model, speculation_of(name)),
                      .seconds = {}});
    }
    for (int round = 0; round < settings.n_rounds; ++round) {
      for (Way& way : ways) way.seconds.push_back(0);
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const std::vector<TokenId> ids = run(ways[0], prompts[i], i, temperature);
        for (Way& way : std::span(ways).subspan(1)) {
          if (run(way, prompts[i], i, temperature) != ids && temperature == 0) {
            throw std::runtime_error(way.name + " gives other tokens than plain decoding");
          }
        }
      }
    }
    for (const Way& way : ways) report(way, ways[0], temperature);
  }
}

int main_of(std::span<char*> arguments) {
  Settings settings;
  std::span<char*> rest = arguments.subspan(1);
  for (; rest.size() > 2 && rest[0][0] == '-'; rest = rest.subspan(2)) {
    const std::string_view flag = rest[0];
    const int value = std::atoi(rest[1]);
    if (flag == "-n" && value > 0) {
      settings.n_texts = static_cast<std::size_t>(value);
    } else if (flag == "-r" && value > 0) {
      settings.n_rounds = value;
    } else if (flag == "-t" && value >= 0) {
      settings.n_threads = value;
    } else {
      break;
    }
  }
  if (rest.size() < 3 || rest[0][0] == '-') {
    std::fprintf(stderr,
                 "usage: measure_speed [-n N] [-r ROUNDS] [-t THREADS] TARGET TEXTS WAY...\n");
    return 2;
  }
  measure(settings, rest[0], rest[1], rest.subspan(2));
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int n_arguments, char** arguments) {
  try {
    return outrider::main_of({arguments, static_cast<std::size_t>(n_arguments)});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "measure_speed: %s\n", error.what());
    return 1;
  }
}
