// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/mxfp4_blocks.h"

#include <vector>

#include "io/blocks/block_formats.h"

namespace outrider {

void Mxfp4Blocks::read(std::int64_t first_row, std::int64_t n_rows, WeightRows& rows) const {
  const BlockFormat& format = *find_block_format(ElementType::mxfp4);
  const bool keeps_codes = kind_ == WeightKind::mxfp4;
  const auto n_blocks = static_cast<std::size_t>(part_.k / kBlock);
  const std::size_t n_all = static_cast<std::size_t>(n_rows) * n_blocks;
  thread_local std::vector<float> buffer;
  std::vector<float>& decoded = kind_ == WeightKind::f32 ? rows.f32 : buffer;
  if (keeps_codes) {
    rows.codes.resize(n_all * kBlock);
    rows.f32_scales.resize(n_all);
  } else {
    decoded.resize(n_all * kBlock);
  }
  std::size_t to = 0;  // block
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const auto stored = static_cast<std::size_t>(part_.first_row + rows_.place(first_row + i));
    for (std::size_t from = stored * n_blocks; from < (stored + 1) * n_blocks; ++from, ++to) {
      BlockParts parts;
      parts.scale = std::to_integer<std::uint8_t>(scales_[from]);
      const float scale = scale_of(format, parts);
      if (keeps_codes) rows.f32_scales[to] = scale;
      for (std::size_t j = 0; j < kBlock; ++j) {
        const auto both = std::to_integer<unsigned>(codes_[from * kBytes + j / 2]);
        const auto code = static_cast<std::uint8_t>(j % 2 == 0 ? both & 15U : both >> 4);
        if (keeps_codes) {
          rows.codes[to * kBlock + j] = code;
        } else {
          decoded[to * kBlock + j] = scale * static_cast<float>(format.values[code]);
        }
      }
    }
  }
  if (!keeps_codes && kind_ != WeightKind::f32) {
    quantize_weights(decoded, n_rows, part_.k, kind_, rows);
  }
}

}  // namespace outrider
