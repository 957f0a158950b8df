// Flags that say how much text, and how its tokens are drawn.
#ifndef OUTRIDER_APPS_SAMPLING_FLAGS_H_
#define OUTRIDER_APPS_SAMPLING_FLAGS_H_

#include <CLI/CLI.hpp>

#include "outrider/generate.h"

namespace outrider::cli {

// How a token is drawn: temperature, truncation, penalties.
void add_transform_flags(CLI::App& app, SamplingParams& sampling);
// These and how much text: fills max_tokens, sampling, seed, ignore_eos and stop_strings.
void add_sampling_flags(CLI::App& app, GenerateOptions& options);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_SAMPLING_FLAGS_H_
