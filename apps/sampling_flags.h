// Flags that say how much text, and how its tokens are drawn.
#ifndef OUTRIDER_APPS_SAMPLING_FLAGS_H_
#define OUTRIDER_APPS_SAMPLING_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "outrider/generate.h"

namespace outrider::cli {

// How a token is drawn: temperature, truncation, penalties.
void add_transform_flags(CLI::App& app, SamplingParams& sampling);
// These and how much text: fills max_tokens, sampling, seed, ignore_eos and stop_strings.
void add_sampling_flags(CLI::App& app, GenerateOptions& options);

// --model-defaults, beside those.
void add_model_defaults_flag(CLI::App& app);
// Where that flag is given: puts what the model's files say in place of every setting whose flag is
// not, and says on standard error what that is. Throws as read_sampling_defaults does.
void take_model_defaults(const CLI::App& app, const std::string& model, SamplingParams& sampling);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_SAMPLING_FLAGS_H_
