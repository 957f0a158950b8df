// SPDX-License-Identifier: Apache-2.0
#include "kernels/dispatch.h"

#include <cstring>

#include "kernels/formats/block_formats.h"
#include "kernels/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace outrider::kernels {
namespace {

struct Features {
  bool avx2 = false;    // with FMA and F16C, which the table needs
  bool avx512 = false;  // F, BW, VL and DQ
  bool avx512_vnni = false;
  bool avx512_bf16 = false;
  bool amx = false;    // tiles with INT8 and BF16, and the system's permission to use them
  bool intel = false;  // the vendor
  bool neon = false;   // with dot products of bytes
  bool i8mm = false;   // and their matrix products
};

#if defined(__x86_64__)
// The register sets that the operating system saves and restores (XCR0).
unsigned saved_state() {
  unsigned low = 0;
  unsigned high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Linux saves the tiles' 8 KB only for processes that have asked. This holds for all threads,
// permanently.
bool ask_for_tiles() {
#if defined(__linux__)
  constexpr long kArchRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;                   // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kArchRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool made_by_intel() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0 && ebx == signature_INTEL_ebx &&
         edx == signature_INTEL_edx && ecx == signature_INTEL_ecx;
}

Features ask_processor() {
  constexpr unsigned kYmmState = 0x6;   // XCR0: SSE and AVX
  constexpr unsigned kZmmState = 0xe6;  // and the masks, the upper halves, registers 16 to 31
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  unsigned eax7_1 = 0, ignored = 0;
  Features features;
  features.intel = made_by_intel();
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0) return features;
  constexpr unsigned kLeaf1 = bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C;
  if ((ecx & kLeaf1) != kLeaf1) return features;
  const unsigned state = saved_state();
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return features;
  features.avx2 = (state & kYmmState) == kYmmState && (ebx & bit_AVX2) != 0;
  constexpr unsigned kAvx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
  features.avx512 = features.avx2 && (state & kZmmState) == kZmmState && (ebx & kAvx512) == kAvx512;
  features.avx512_vnni = features.avx512 && (ecx & bit_AVX512VNNI) != 0;
  const bool has_leaf_7_1 = __get_cpuid_count(7, 1, &eax7_1, &ignored, &ignored, &ignored) != 0;
  features.avx512_bf16 = features.avx512 && has_leaf_7_1 && (eax7_1 & bit_AVX512BF16) != 0;
  constexpr unsigned kTileState = 0x60000;  // XCR0: tile configuration and tile data
  constexpr unsigned kAmx = 1U << 22 | 1U << 24 | 1U << 25;  // BF16, tiles, INT8
  features.amx = features.avx512_vnni && (state & kTileState) == kTileState &&
                 (edx & kAmx) == kAmx && ask_for_tiles();
  return features;
}
#elif defined(__aarch64__) && defined(__linux__)
// Asks the system, since user programs cannot query every feature of the processor.
Features ask_processor() {
  Features features;
  features.neon = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  features.i8mm = features.neon && (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0;
  return features;
}
#else
Features ask_processor() { return {}; }
#endif

#if defined(__x86_64__) || defined(__aarch64__)
template <WeightKind kKind>
void set_matmul(KernelTable& table, void (*matmul)(const MatmulArgs&)) {
  table.formats[static_cast<int>(kKind)].matmul = matmul;
}

template <class... Formats>
void set_stored_matmuls(KernelTable& table, FormatList<Formats...>) {
#if defined(__x86_64__)
  (set_matmul<Formats::kKind>(table, matmul_stored_vnni<Formats::kKind>), ...);
#else
  (set_matmul<Formats::kKind>(table, matmul_stored_i8mm<Formats::kKind>), ...);
#endif
}
#endif

const Features& features() {
  static const Features found = ask_processor();
  return found;
}

}  // namespace

std::span<const KernelTable* const> compiled_tables() {
#if defined(__x86_64__)
  static const KernelTable avx512 = [] {
    KernelTable table = kAvx512Table;
    if (features().avx512_vnni) {
      const bool side_by_side = features().intel;
      set_matmul<WeightKind::int8>(table,
                                   side_by_side ? matmul_int8_vnni_side_by_side : matmul_int8_vnni);
      set_matmul<WeightKind::int4>(table,
                                   side_by_side ? matmul_int4_vnni_side_by_side : matmul_int4_vnni);
      set_stored_matmuls(table, StoredFormats{});
      table.attend[static_cast<int>(KvKind::int8)] = attend_int8_vnni;
    }
    if (features().avx512_bf16) {
      table.formats[static_cast<int>(WeightKind::bf16)] = {
          ActivationForm::bf16, tile_bytes_bf16_pairs, pack_tile_bf16_pairs, matmul_bf16_pairs};
      table.round_row = round_row_to_pairs;
      table.attend_bf16_pairs = attend_bf16_pairs;
    }
    return table;
  }();
  static const KernelTable* const tables[] = {&kScalarTable, &kAvx2Table, &avx512, &kAmxTable};
#elif defined(__aarch64__)
  static const KernelTable neon = [] {
    KernelTable table = kNeonTable;
    if (features().i8mm) {
      set_matmul<WeightKind::int8>(table, matmul_int8_i8mm);
      set_matmul<WeightKind::int4>(table, matmul_int4_i8mm);
      set_stored_matmuls(table, StoredFormats{});
    }
    return table;
  }();
  static const KernelTable* const tables[] = {&kScalarTable, &neon};
#else
  static const KernelTable* const tables[] = {&kScalarTable};
#endif
  return tables;
}

bool is_supported(const KernelTable& table) {
  if (std::strcmp(table.name, "avx2") == 0) return features().avx2;
  if (std::strcmp(table.name, "avx512") == 0) return features().avx512;
  if (std::strcmp(table.name, "amx") == 0) return features().amx;
  if (std::strcmp(table.name, "neon") == 0) return features().neon;
  return std::strcmp(table.name, "scalar") == 0;
}

const KernelTable* find_table(const char* name) {
  for (const KernelTable* table : compiled_tables()) {
    if (std::strcmp(table->name, name) == 0) return table;
  }
  return nullptr;
}

const KernelTable& best_table() {
  const KernelTable* best = &kScalarTable;
  for (const KernelTable* table : compiled_tables()) {
    if (is_supported(*table)) best = table;
  }
  return *best;
}

}  // namespace outrider::kernels
