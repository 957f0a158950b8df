#include "sampling_flags.h"

#include <string>
#include <vector>

#include "flag_values.h"
#include "outrider/error.h"

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
           "Divides the logits; 0 always takes the likeliest token (default: 0)")
      ->group(kSampling);
  add_integer(app, "--top-k", sampling.top_k, 0,
              "Keep the K likeliest tokens; 0 keeps all (default: 0)")
      ->group(kSampling);
  add_real(app, "--top-p", sampling.top_p, kShare,
           "Keep the fewest likeliest tokens that hold this probability (default: 1)")
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

}  // namespace outrider::cli
