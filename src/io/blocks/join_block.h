// SPDX-License-Identifier: Apache-2.0
// The inverse of split() in io/blocks/block_formats.h: joins parts to a block's bytes.
#ifndef OUTRIDER_IO_BLOCKS_JOIN_BLOCK_H_
#define OUTRIDER_IO_BLOCKS_JOIN_BLOCK_H_

#include <cstddef>

#include "io/blocks/block_formats.h"

namespace outrider {

// For the types that can be written (io/blocks/block_encoder.h): join(split(bytes)) equals bytes.
// Codes, sub-scales and sub-minimums must be within their ranges. Thread-safe.
void join_q8_0(const BlockParts& parts, std::byte* block);
void join_q4_0(const BlockParts& parts, std::byte* block);
void join_q5_0(const BlockParts& parts, std::byte* block);
void join_q5_1(const BlockParts& parts, std::byte* block);
void join_q4_k(const BlockParts& parts, std::byte* block);
void join_q5_k(const BlockParts& parts, std::byte* block);
void join_q6_k(const BlockParts& parts, std::byte* block);

}  // namespace outrider

#endif  // OUTRIDER_IO_BLOCKS_JOIN_BLOCK_H_
