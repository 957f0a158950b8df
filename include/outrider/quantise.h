// SPDX-License-Identifier: Apache-2.0
// Writes GGUF files with weights in fewer bits.
#ifndef OUTRIDER_QUANTISE_H_
#define OUTRIDER_QUANTISE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace outrider {

struct QuantiseOptions {
  std::string type = "q4_k_m";  // one of quantised_file_types()
  // Accept weights that are quantised already, in another type. The errors of both add up.
  bool requantise = false;
  bool replace = false;  // overwrite an existing file
  int threads = 0;       // 0: every processor
  // Called with the share done, 0..1. An exception from it ends the work.
  std::function<void(double)> progress = {};
};

// The tensors of one type in the new file.
struct QuantisedShare {
  std::string type;  // "f32", "q4_k", ...
  std::int64_t n_tensors = 0;
  std::int64_t n_elements = 0;
  std::uint64_t n_bytes = 0;
};

struct QuantiseSummary {
  std::uint64_t n_bytes_read = 0;      // of all tensors of the model
  std::uint64_t n_bytes = 0;           // of the new file
  std::vector<QuantisedShare> shares;  // the largest first
  std::vector<std::string> warnings;   // deviations from the type's name, a sentence each
};

// The values of QuantiseOptions::type: "q8_0", "q6_k", "q4_k_m", "q4_0".
std::vector<std::string> quantised_file_types();

// Writes `model`, a GGUF file (of a split one, the first part), to `out` with its matrices in fewer
// bits. docs/models.md says which tensor takes which type and how numbers are rounded. Metadata is
// copied byte for byte, except that general.file_type and general.quantization_version are set and
// split.* is left out. The file appears whole or not at all. The same model and type give the same
// file on every machine. Memory: some MiB beyond the mapped model, which is released tensor by
// tensor.
//
// Throws UsageError for invalid options. Throws Error, with the tensor's name, for a tensor of a
// type that cannot be read and for one that is quantised already (see requantise). The same holds
// for numbers that are NaN, infinite or too large for the type. Throws Error also for a model that
// is not a GGUF file, an `out` that exists (see replace) or is one of the input files, and a file
// that cannot be written.
QuantiseSummary quantise_file(const std::filesystem::path& model, const std::filesystem::path& out,
                              const QuantiseOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_QUANTISE_H_
