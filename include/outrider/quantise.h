// GGUF files with weights in fewer bits.
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
  // Take weights that are quantised already, in another type, too: the errors of both add up.
  bool requantise = false;
  bool replace = false;  // a file that is at the place of the new one
  int threads = 0;       // 0: every processor
  // Called with the share done, 0..1. What it throws ends the work.
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
  std::vector<std::string> warnings;   // what is not as the type's name says, a sentence each
};

// "q8_0", "q6_k", "q4_k_m", "q4_0": what QuantiseOptions::type may be.
std::vector<std::string> quantised_file_types();

// Writes `model`, a GGUF file (of a split one, the first part), to `out`, with its matrices in
// fewer bits. Which tensor takes which type, and how numbers are rounded, stands in docs/models.md.
// All metadata is copied byte for byte, but for general.file_type and general.quantization_version,
// which are set, and split.*, which are left out. The file appears whole or not at all. The same
// model and type give the same file on every machine. Memory: some MiB beyond what is read of the
// model, which is given back tensor by tensor.
//
// Throws UsageError for options, and Error for a model that is no GGUF file, a tensor of a type
// that cannot be read, one that is quantised already (requantise), numbers that are NaN, infinite
// or too large for the type, naming the tensor, a place that is taken (replace) or is one of the
// files that are read, and a file that cannot be written.
QuantiseSummary quantise_file(const std::filesystem::path& model, const std::filesystem::path& out,
                              const QuantiseOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_QUANTISE_H_
