// SPDX-License-Identifier: Apache-2.0
// The tables and the shared packing functions, for code that assembles tables (the
// per-instruction-set files and dispatch.cc) and for tests of variants that dispatch.h does not
// list. All other code uses dispatch.h.
#ifndef OUTRIDER_KERNELS_TABLES_H_
#define OUTRIDER_KERNELS_TABLES_H_

#include <cstddef>

#include "kernels/table.h"

namespace outrider::kernels {

extern const KernelTable kScalarTable;
#if defined(__x86_64__)
extern const KernelTable kAvx2Table;
extern const KernelTable kAvx512Table;  // without VNNI and BF16
extern const KernelTable kAmxTable;     // also needs VNNI

// Functions with VNNI; dispatch.cc puts them into the avx512 table that it lists.
void matmul_int8_vnni(const MatmulArgs& args);
void matmul_int4_vnni(const MatmulArgs& args);
// For the formats of files (formats/block_formats.h, StoredFormats).
template <WeightKind kKind>
void matmul_stored_vnni(const MatmulArgs& args);
void attend_int8_vnni(const AttendArgs& args);
// The same products with the prefetching that suits Intel's processors.
void matmul_int8_vnni_side_by_side(const MatmulArgs& args);
void matmul_int4_vnni_side_by_side(const MatmulArgs& args);

// The same for AVX512_BF16, with weights packed in pairs.
void matmul_bf16_pairs(const MatmulArgs& args);
void round_row_to_pairs(const float* x, int k, std::uint16_t* out, int slots);
void attend_bf16_pairs(const AttendArgs& args);

// For the amx table.
void attend_bf16_amx(const AttendArgs& args);
void attend_int8_amx(const AttendArgs& args);
#elif defined(__aarch64__)
extern const KernelTable kNeonTable;  // without I8MM

// Functions with I8MM; dispatch.cc puts them into the neon table that it lists.
void matmul_int8_i8mm(const MatmulArgs& args);
void matmul_int4_i8mm(const MatmulArgs& args);
// For the formats of files (formats/block_formats.h, StoredFormats).
template <WeightKind kKind>
void matmul_stored_i8mm(const MatmulArgs& args);
#endif

// Size and packing of a tile (layout.h, formats/block_formats.h), the same for all tables.
template <WeightKind kKind>
std::size_t tile_bytes(int k);
template <WeightKind kKind>
void pack_tile(const TileSource& source, void* tile);
std::size_t tile_bytes_bf16_pairs(int k);  // of tables with round_row
void pack_tile_bf16_pairs(const TileSource& source, void* tile);

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_TABLES_H_
