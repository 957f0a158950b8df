// What a model file holds, without loading it.
#ifndef OUTRIDER_INSPECT_H_
#define OUTRIDER_INSPECT_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace outrider {

struct TensorSummary {
  std::string name;
  std::string type;                 // "f32", "q4_0", ...
  std::vector<std::int64_t> shape;  // outermost first
  std::int64_t n_bytes = 0;
};

struct FileSummary {
  std::string format;                                         // "safetensors" or "gguf"
  std::vector<std::pair<std::string, std::string>> metadata;  // config or GGUF metadata, shortened
  std::vector<TensorSummary> tensors;                         // in file order
};

// PATH as for Model::load. Reads headers only. Throws Error.
FileSummary inspect_file(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_INSPECT_H_
