// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/sampling_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "outrider/error.h"
#include "outrider/sampling_defaults.h"

namespace outrider::cli {
namespace {

constexpr RealRange kNotNegative{0, true, kInfinity, false, "a number of 0 or more"};
constexpr RealRange kPositive{0, false, kInfinity, false, "a number above 0"};
constexpr RealRange kShare{0, false, 1, true, "a number in (0, 1]"};
constexpr RealRange kClosedShare{0, true, 1, true, "a number in [0, 1]"};
constexpr const char* kSampling = "Sampling (in the order applied; default: greedy)";
constexpr RealRange kFinite{-kInfinity, false, kInfinity, false, "a finite number"};

}  // namespace

void add_transform_flags(CLI::App& app, SamplingParams& sampling) {
  add_real(app, "--repetition-penalty", sampling.repetition_penalty, kPositive,
           "Divides positive, multiplies negative logits of tokens seen (default: 1)")
      ->group(kSampling);
  add_real(app, "--presence-penalty", sampling.presence_penalty, kFinite,
           "Taken off the logit of every token generated before (default: 0)")
      ->group(kSampling);
  add_real(app, "--frequency-penalty", sampling.frequency_penalty, kFinite,
           "Taken off once for each time it was generated (default: 0)")
      ->group(kSampling);
  add_real(app, "-t,--temperature", sampling.temperature, kNotNegative,
           "Divides the logits; 0 takes the likeliest token (default: 0)")
      ->group(kSampling);
  add_integer(app, "--top-k", sampling.top_k, 0,
              "Keep the K likeliest tokens; 0 keeps all (default: 0)")
      ->group(kSampling);
  add_real(app, "--top-p", sampling.top_p, kShare,
           "Keep the likeliest tokens that hold this share (default: 1)")
      ->group(kSampling);
  add_real(app, "--min-p", sampling.min_p, kClosedShare,
           "Drop tokens below this share of the likeliest one's probability (default: 0)")
      ->group(kSampling);
}

void add_sampling_flags(CLI::App& app, GenerateOptions& options) {
  constexpr const char* kLength = "Length";
  add_integer(app, "-n,--max-tokens", options.max_tokens, 0,
              "Tokens to generate at most (default: 256)")
      ->group(kLength);
  app.add_flag("--ignore-eos", options.ignore_eos, "Go on past the model's end tokens")
      ->group(kLength);
  app.add_option_function<std::vector<std::string>>(
         "--stop",
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             if (text.empty()) throw UsageError("read flags", "--stop", "a text", "an empty one");
           }
           options.stop_strings = texts;
         },
         "End before this text appears; may be given several times")
      ->type_name("TEXT")
      ->allow_extra_args(false)
      ->group(kLength);

  add_transform_flags(app, options.sampling);
  add_seed(app, "--seed", options.seed, "The same seed gives the same text (default: 0)")
      ->group(kSampling);
}

void add_model_defaults_flag(CLI::App& app) {
  const std::string description =
      "What the model's files recommend, for every setting whose flag is not given";
  app.add_flag("--model-defaults", description)->group(kSampling);
}

void take_model_defaults(const CLI::App& app, const std::string& model, SamplingParams& sampling) {
  if (app.get_option("--model-defaults")->count() == 0) return;
  SamplingDefaults defaults = read_sampling_defaults(model);
  std::string said;
  const auto take = [&](const char* flag, auto& setting) {
    if (app.get_option(flag)->count() > 0) setting.reset();
    if (setting) said += fmt::format("{}{} {}", said.empty() ? "" : ", ", flag, *setting);
  };
  take("--temperature", defaults.temperature);
  take("--top-k", defaults.top_k);
  take("--top-p", defaults.top_p);
  take("--min-p", defaults.min_p);
  take("--repetition-penalty", defaults.repetition_penalty);
  take("--presence-penalty", defaults.presence_penalty);
  take("--frequency-penalty", defaults.frequency_penalty);
  sampling = with_defaults(std::move(sampling), defaults);
  fmt::print(stderr, "outrider: the model's files recommend {}\n", said.empty() ? "nothing" : said);
  if (defaults.unused.empty()) return;
  fmt::print(stderr, "outrider: warning: the model's files also say {}, which is not supported\n",
             fmt::join(defaults.unused, ", "));
}

}  // namespace outrider::cli
