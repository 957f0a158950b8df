// SPDX-License-Identifier: Apache-2.0
// Flags for the amount of text and the sampling of its tokens.
#ifndef OUTRIDER_APPS_FLAGS_SAMPLING_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_SAMPLING_FLAGS_H_

#include <CLI/CLI.hpp>
#include <string>

#include "outrider/generate.h"

namespace outrider::cli {

// Sampling of a token: temperature, truncation, penalties.
void add_transform_flags(CLI::App& app, SamplingParams& sampling);
// These and the amount of text: fills max_tokens, sampling, seed, ignore_eos and stop_strings.
void add_sampling_flags(CLI::App& app, GenerateOptions& options);

// --model-defaults, in addition to those.
void add_model_defaults_flag(CLI::App& app);
// If --model-defaults is given: replaces every setting whose flag is not given by the value in the
// model's files, and prints the values on standard error. Throws as read_sampling_defaults does.
void take_model_defaults(const CLI::App& app, const std::string& model, SamplingParams& sampling);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_SAMPLING_FLAGS_H_
