// SPDX-License-Identifier: Apache-2.0
// The sampling parameters that a model's files recommend.
#ifndef OUTRIDER_SAMPLING_DEFAULTS_H_
#define OUTRIDER_SAMPLING_DEFAULTS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "outrider/sampling.h"

namespace outrider {

// Values that the files do not give are empty.
struct SamplingDefaults {
  std::optional<double> temperature;  // 0 if a file asks for the likeliest token
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  // Settings without a counterpart in this engine, such as "no_repeat_ngram_size 3".
  std::vector<std::string> unused;
};

// Reads the defaults. PATH: a Hugging Face directory with generation_config.json, or a GGUF file
// with keys general.sampling.*; without these nothing is set. A generation_config.json without
// "do_sample": true asks for the likeliest token, as in Hugging Face's generate(). Keys that it
// lacks stay unset (generate() would keep the 50 likeliest tokens). Throws Error with file and key
// for a value of the wrong type or out of range. Thread-safe.
SamplingDefaults read_sampling_defaults(const std::filesystem::path& path);

// Returns `params` with the values that `defaults` sets.
SamplingParams with_defaults(SamplingParams params, const SamplingDefaults& defaults);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DEFAULTS_H_
