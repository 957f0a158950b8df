// One GGUF file by itself, be it a part of a split one.
#ifndef OUTRIDER_IO_MAP_GGUF_H_
#define OUTRIDER_IO_MAP_GGUF_H_

#include <filesystem>
#include <memory>

#include "io/gguf.h"

namespace outrider {

// As open_gguf(), but that a part of a split file is what it holds itself.
std::unique_ptr<GgufFile> map_gguf(const std::filesystem::path& file);

}  // namespace outrider

#endif  // OUTRIDER_IO_MAP_GGUF_H_
