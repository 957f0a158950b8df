// SPDX-License-Identifier: Apache-2.0
// Opens a single GGUF file, possibly a part of a split one.
#ifndef OUTRIDER_IO_GGUF_MAP_GGUF_H_
#define OUTRIDER_IO_GGUF_MAP_GGUF_H_

#include <filesystem>
#include <memory>

#include "io/gguf/gguf.h"

namespace outrider {

// As open_gguf(), but a part of a split file gives only its own contents.
std::unique_ptr<GgufFile> map_gguf(const std::filesystem::path& file);

}  // namespace outrider

#endif  // OUTRIDER_IO_GGUF_MAP_GGUF_H_
