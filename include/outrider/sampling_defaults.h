// The sampling that a model's files recommend.
#ifndef OUTRIDER_SAMPLING_DEFAULTS_H_
#define OUTRIDER_SAMPLING_DEFAULTS_H_

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "outrider/sampling.h"

namespace outrider {

// What is empty the files do not say.
struct SamplingDefaults {
  std::optional<double> temperature;  // 0 where a file says to take the likeliest token
  std::optional<int> top_k;
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<double> presence_penalty;
  std::optional<double> frequency_penalty;
  // Settings of meaning that this engine has no counterpart of, "no_repeat_ngram_size 3".
  std::vector<std::string> unused;
};

// PATH: a Hugging Face directory with generation_config.json, or a GGUF file with keys
// general.sampling.*; nothing is set where there are none. A generation_config.json that does not
// say "do_sample": true asks for the likeliest token, as in Hugging Face's generate(); what it does
// not name stays unset (generate() itself would keep the 50 likeliest tokens). Throws Error naming
// file and key on a value of another type, or that no sampling can have. Thread-safe.
SamplingDefaults read_sampling_defaults(const std::filesystem::path& path);

// `params` with what the files say in place of what it has.
SamplingParams with_defaults(SamplingParams params, const SamplingDefaults& defaults);

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_DEFAULTS_H_
