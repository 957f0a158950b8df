// The products of machines with matrix units (Intel AMX: INT8 and BF16 tiles). Everything else of
// this table is the avx512 table's arithmetic.
//
// A tile register holds up to 16 rows of 64 bytes; one instruction multiplies a tile of inputs
// (rows of the batch) by a tile of weights (16 outputs) and adds to a tile of sums. A row of sums
// depends on its own row of inputs alone.
//
// int8 and int4: 32 products of bytes, one group, are one instruction; what costs is bringing the
// exact integers back and scaling them, row by row. So the next few groups' tiles are multiplied
// while those before them are scaled: neither waits for the other.
//
// bf16: the units' own order of additions, the same for every number of rows.
#if defined(__x86_64__)
#include "kernels/algorithms.h"
#include "kernels/tile_shape.h"
#include "kernels/vector512.h"

namespace outrider::kernels {
namespace {

// Row tiles that go together over the weights. int8, int4: 64 rows' inputs and running sums stay in
// the second cache beside a block of weights.
// bf16: 128 rows, whose inputs, half a megabyte or more, still stay in the second.
constexpr int kMostRowTiles = 4;
constexpr int kMostRowTilesBf16 = 8;

// --- int8 and int4 -----------------------------------------------------------------------------

// Groups whose dots are on their way while an earlier one's are scaled: their way through the tiles
// and the memory is long (52 cycles and as much again), and neither work waits for the other.
constexpr int kAhead = 3;

// How many groups ahead of scaling the first row tile unpacks int4: a tile would wait long for
// lines just written.
constexpr int kUnpackAhead = 8;

// Groups that all row tiles pass before the next ones come. Long, so that inputs and weights are
// read in long runs from the second cache (8 groups: a seventh slower for 32 rows); of int4, which
// the first row tile unpacks, no more than leave room for inputs in the first cache.
template <WeightKind kKind>
constexpr int kBlockGroups = kKind == WeightKind::int8 ? 64 : 32;

// R: the height of a row tile (row_tile_height), 4, 8, 12 or 16.
template <WeightKind kKind, int R>
class QuantizedProduct {
 public:
  QuantizedProduct(const MatmulArgs& args, int first_row_tile, int n_row_tiles)
      : args_(args), first_row_tile_(first_row_tile), n_row_tiles_(n_row_tiles) {}

  void run() {
    const std::size_t tile_bytes = (kInt8 ? Int8::tile_bytes(args_.k) : Int4::tile_bytes(args_.k));
    const int n_groups = group_count(args_.k);
    // Weights are called for a block ahead, short tiles several together: streams within one would
    // end before the prefetcher has caught up with them.
    const int together = n_groups < kGroups ? kGroups / n_groups : 1;
    for (int tile = args_.first_tile; tile < args_.first_tile + args_.n_tiles; ++tile) {
      const std::byte* weights =
          static_cast<const std::byte*>(args_.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
      const int part = (tile - args_.first_tile) % together;
      for (int first = 0; first < n_groups; first += kGroups) {
        const int n = n_groups - first < kGroups ? n_groups - first : kGroups;
        const std::size_t at = static_cast<std::size_t>(first) * kGroupBytes;
        const std::byte* block = weights + at;
        // As many bytes as this block has, padding and all, a whole block further on.
        const std::size_t n_bytes =
            first + n == n_groups ? tile_bytes - at : static_cast<std::size_t>(n) * kGroupBytes;
        const std::size_t ahead = n_groups < kGroups ? tile_bytes : kGroups * kGroupBytes;
        const Next next =
            together == 1 ? Next{block + ahead, n_bytes, 0, 1}
                          : Next{weights + static_cast<std::size_t>(together - part) * tile_bytes,
                                 static_cast<std::size_t>(together) * tile_bytes, part, together};
        run_block(block, tile, first, n, next);
      }
    }
  }

 private:
  static constexpr bool kInt8 = kKind == WeightKind::int8;
  static constexpr int kGroups = kBlockGroups<kKind>;
  static constexpr std::size_t kGroupBytes = kInt8 ? kInt8PairBytes / 2 : kInt4GroupBytes;
  static constexpr int kDots = kAhead + 1;
  static_assert(kGroups % 2 == 0, "groups of int8 lie in pairs");

  // The weights to call for during a block: one of some shares of these.
  struct Next {
    const std::byte* weights;
    std::size_t n_bytes;
    int share;
    int n_shares;
  };

  // Where a row tile's operands of a block stand. Values of their own in registers, not members:
  // what lies in memory is read again after every instruction that stores a tile.
  struct Place {
    const std::byte* weights;
    const std::int8_t* inputs;
    const float* input_scales;
    const float* scaled_sums;
    std::size_t slots;
    int n;            // groups
    int unpacked;     // of them, by an earlier row tile
    CallAhead ahead;  // for this row tile's share of the next block
  };

  // All row tiles past the n groups of a tile that begin at `first`.
  void run_block(const std::byte* block, int tile, int first, int n, const Next& next) {
    const int n_groups = group_count(args_.k);
    for (int row_tile = 0; row_tile < n_row_tiles_; ++row_tile) {
      const int row = (first_row_tile_ + row_tile) * R;
      Vector sums[R];
      for (int r = 0; r < R; ++r) {
        sums[r] = first == 0 ? Vector::zero() : Vector::load(running_[row_tile][r]);
      }
      multiply_and_scale(place_of(block, row, row_tile, first, n, next), sums);
      if (first + n < n_groups) {
        for (int r = 0; r < R; ++r) sums[r].store(running_[row_tile][r]);
      } else {
        for (int r = 0; r < R && row + r < args_.n_rows; ++r) {
          store_tile(sums[r], args_, row + r, tile);
        }
      }
    }
  }

  Place place_of(const std::byte* block, int row, int row_tile, int first, int n,
                 const Next& next) const {
    const auto slots = static_cast<std::size_t>(args_.slots);
    const std::size_t at = static_cast<std::size_t>(first) * slots + static_cast<std::size_t>(row);
    return {.weights = block,
            .inputs = args_.quantized + at * kGroup,
            .input_scales = args_.quantized_scales + at,
            .scaled_sums = args_.scaled_sums + at,
            .slots = slots,
            .n = n,
            .unpacked = row_tile > 0 ? n : 0,
            .ahead = CallAhead(next.weights, next.n_bytes, next.share * n_row_tiles_ + row_tile,
                               next.n_shares * n_row_tiles_, n)};
  }

  void multiply_and_scale(const Place& place, Vector (&result)[R]) {
    Vector sums[R];
    for (int r = 0; r < R; ++r) sums[r] = result[r];
    CallAhead ahead = place.ahead;
    for (int i = 0; i < kUnpackAhead; ++i) unpack(place, i);
    // Loading a tile is an instruction of which the compiler does not know that it reads memory.
    __asm__ volatile("" ::: "memory");
    for (int i = 0; i < kAhead && i < place.n; ++i) multiply(place, i, dots_[i % kDots]);
    for (int i = 0; i < place.n; ++i) {
      unpack(place, i + kUnpackAhead);
      if (i + kAhead < place.n) multiply(place, i + kAhead, dots_[(i + kAhead) % kDots]);
      ahead.step();
      scale(place, i, dots_[i % kDots], sums);
    }
    for (int r = 0; r < R; ++r) result[r] = sums[r];
  }

  // dots = inputs * weights of the block's i-th group.
  void multiply(const Place& place, int i, std::int32_t (&dots)[R][kTileColumns]) {
    if constexpr (kInt8) {
      _tile_loadd(4, place.weights + int8_weights_at(i), kRowBytes);
    } else {
      _tile_loadd(4, unpacked_[i], kRowBytes);
    }
    _tile_loadd(6, place.inputs + static_cast<std::size_t>(i) * place.slots * kGroup, kGroup);
    _tile_zero(0);
    _tile_dpbssd(0, 6, 4);
    _tile_stored(0, dots, kTileColumns * 4);
  }

  // int4: the block's i-th group, if there is one and it is not unpacked yet. A byte holds quad r
  // in its low and quad r + 4 in its high half.
  void unpack(const Place& place, int i) {
    if (kInt8 || i < place.unpacked || i >= place.n) return;
    const std::byte* packed = place.weights + int4_weights_at(i);
    std::byte* out = unpacked_[i];
    const __m512i low_bits = _mm512_set1_epi8(15);
    for (int quad = 0; quad < kQuads / 2; ++quad) {
      const __m512i both = _mm512_load_si512(packed + quad * kRowBytes);
      _mm512_store_si512(out + quad * kRowBytes, _mm512_and_si512(both, low_bits));
      _mm512_store_si512(out + (quad + kQuads / 2) * kRowBytes,
                         _mm512_and_si512(_mm512_srli_epi16(both, 4), low_bits));
    }
  }

  // The float combination, in the order that table.h fixes.
  static void scale(const Place& place, int i, const std::int32_t (&dots)[R][kTileColumns],
                    Vector (&sums)[R]) {
    const std::size_t row = static_cast<std::size_t>(i) * place.slots;
    const float* input_scales = place.input_scales + row;
    const Vector scale = Vector::load_f16(reinterpret_cast<const std::uint16_t*>(
        place.weights + (kInt8 ? int8_scales_at(i) : int4_scales_at(i))));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const Vector dot{_mm512_cvtepi32_ps(_mm512_load_si512(dots[r]))};
      sums[r] = fma(dot, scale * Vector::broadcast(input_scales[r]), sums[r]);
    }
    if constexpr (!kInt8) {
      const Vector minimum = Vector::load_f16(
          reinterpret_cast<const std::uint16_t*>(place.weights + int4_minimums_at(i)));
      const float* scaled_sums = place.scaled_sums + row;
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        sums[r] = fma(Vector::broadcast(scaled_sums[r]), minimum, sums[r]);
      }
    }
  }

  const MatmulArgs& args_;
  const int first_row_tile_;
  const int n_row_tiles_;
  alignas(64) std::int32_t dots_[kDots][R][kTileColumns];
  alignas(64) std::byte unpacked_[kInt8 ? 1 : kGroups][kInt8GroupBytes];
  alignas(64) float running_[kMostRowTiles][R][kTileColumns];
};

template <WeightKind kKind, int R>
void multiply_quantized_tiles(const MatmulArgs& args) {
  const TileShape shape(R, kGroup, kQuads);
  const int n_row_tiles = row_tiles(args.n_rows);
  for (int first = 0; first < n_row_tiles; first += kMostRowTiles) {
    const int left = n_row_tiles - first;
    QuantizedProduct<kKind, R>(args, first, left < kMostRowTiles ? left : kMostRowTiles).run();
  }
}

// Up to so many rows one vector instruction per four products is as quick as the way into the
// tiles and back; the bits are the same. (Whole passes, milliseconds by vectors and by tiles. int8:
// 1.1 billion parameters alike from 4 to 8 rows; 125 million 6.5 and 6.1 for 6, 7.5 and 6.8 for 8;
// 7 million 0.33 and 0.37 for 5, 0.44 and 0.44 for 8: 6 is in the middle. int4: 1.1 billion 32 and
// 37 for 8.)
template <WeightKind kKind>
constexpr int kFewRows = kKind == WeightKind::int8 ? 6 : 8;

template <WeightKind kKind>
void matmul_quantized_amx(const MatmulArgs& args) {
  if (args.n_rows <= kFewRows<kKind>) {
    kKind == WeightKind::int8 ? matmul_int8_vnni_side_by_side(args)
                              : matmul_int4_vnni_side_by_side(args);
    return;
  }
  switch (row_tile_height(args.n_rows)) {
    case 4:
      return multiply_quantized_tiles<kKind, 4>(args);
    case 8:
      return multiply_quantized_tiles<kKind, 8>(args);
    case 12:
      return multiply_quantized_tiles<kKind, 12>(args);
    default:
      return multiply_quantized_tiles<kKind, 16>(args);
  }
}

// --- bf16 --------------------------------------------------------------------------------------

// kRowTiles x kColumnTiles tiles of the product, at most four in all.
template <int kRowTiles, int kColumnTiles, class Ahead = NothingAhead>
void multiply_bf16(const MatmulArgs& args, int tile, int row, int height, Ahead ahead = {}) {
  static_assert(kRowTiles == 1 ? kColumnTiles <= 4 : kRowTiles == 2 && kColumnTiles <= 2);
  const std::size_t tile_bytes = packed_pairs_bytes(args.k);
  const std::byte* weights =
      static_cast<const std::byte*>(args.tiles) + static_cast<std::size_t>(tile) * tile_bytes;
  const std::uint16_t* inputs = args.rounded + static_cast<std::size_t>(row) * kGroup;
  const std::size_t next_tile = static_cast<std::size_t>(height) * kGroup;
  const std::size_t next_group = static_cast<std::size_t>(args.slots) * kGroup;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int group = 0; group < group_count(args.k); ++group) {
    _tile_loadd(6, inputs, kGroup * 2);
    if constexpr (kRowTiles == 2) _tile_loadd(7, inputs + next_tile, kGroup * 2);
    _tile_loadd(4, weights, kLineBytes);
    _tile_dpbf16ps(0, 6, 4);
    if constexpr (kRowTiles == 2) _tile_dpbf16ps(2, 7, 4);
    ahead.step();
    if constexpr (kColumnTiles > 1) {
      _tile_loadd(5, weights + tile_bytes, kLineBytes);
      _tile_dpbf16ps(1, 6, 5);
      if constexpr (kRowTiles == 2) _tile_dpbf16ps(3, 7, 5);
    }
    if constexpr (kColumnTiles > 2) {
      _tile_loadd(4, weights + 2 * tile_bytes, kLineBytes);
      _tile_dpbf16ps(2, 6, 4);
    }
    if constexpr (kColumnTiles > 3) {
      _tile_loadd(5, weights + 3 * tile_bytes, kLineBytes);
      _tile_dpbf16ps(3, 6, 5);
    }
    inputs += next_group;
    weights += kPairsGroupBytes;
  }
  alignas(64) float sums[4][16][kTileColumns];
  _tile_stored(0, sums[0], kLineBytes);
  if constexpr (kRowTiles * kColumnTiles > 1) _tile_stored(1, sums[1], kLineBytes);
  if constexpr (kRowTiles * kColumnTiles > 2 || kRowTiles == 2) {
    _tile_stored(2, sums[2], kLineBytes);
  }
  if constexpr (kRowTiles * kColumnTiles > 3) _tile_stored(3, sums[3], kLineBytes);
  for (int i = 0; i < kRowTiles; ++i) {
    for (int r = 0; r < height && row + i * height + r < args.n_rows; ++r) {
      for (int j = 0; j < kColumnTiles; ++j) {
        // Two row tiles have their sums in registers 0, 1 and 2, 3.
        store_tile(Vector::load(sums[kRowTiles == 2 ? 2 * i + j : j][r]), args,
                   row + i * height + r, tile + j);
      }
    }
  }
}

// One row tile: four tiles of columns at a time, so that the inputs are loaded once for them all,
// and so that four streams of weights flow: the hardware's prefetcher, which follows each by
// itself, then draws more from the memory than one stream gives (15 instead of 11 GB/s a core were
// seen). Calling for lines in software on top of that costs buffers that the tiles' own loads need.
void multiply_bf16_row_tile(const MatmulArgs& args, int row, int height) {
  const int end = args.first_tile + args.n_tiles;
  for (int tile = args.first_tile; tile < end; tile += 4) {
    switch (end - tile) {
      case 1:
        multiply_bf16<1, 1>(args, tile, row, height);
        break;
      case 2:
        multiply_bf16<1, 2>(args, tile, row, height);
        break;
      case 3:
        multiply_bf16<1, 3>(args, tile, row, height);
        break;
      default:
        multiply_bf16<1, 4>(args, tile, row, height);
        break;
    }
  }
}

// Several row tiles: two by two. The first pair brings a pair of columns' weights from memory, the
// others find them in the cache. Multiplying and waiting for memory would take turns, since no load
// is begun long before its tile is due: so every pair calls for its part of the next columns.
void multiply_bf16_row_tiles(const MatmulArgs& args, int first_row_tile, int n_row_tiles,
                             int height) {
  const std::size_t tile_bytes = packed_pairs_bytes(args.k);
  const int n_row_pairs = (n_row_tiles + 1) / 2;
  const int end = args.first_tile + args.n_tiles;
  for (int tile = args.first_tile; tile < end; tile += 2) {
    const bool two_columns = tile + 1 < end;
    const std::byte* next =
        static_cast<const std::byte*>(args.tiles) + static_cast<std::size_t>(tile + 2) * tile_bytes;
    for (int pair = 0; pair < n_row_pairs; ++pair) {
      const int row = (first_row_tile + 2 * pair) * height;
      const bool two_rows = 2 * pair + 1 < n_row_tiles;
      const CallAhead ahead(next, 2 * tile_bytes, pair, n_row_pairs, group_count(args.k));
      if (two_rows && two_columns) {
        multiply_bf16<2, 2>(args, tile, row, height, ahead);
      } else if (two_rows) {
        multiply_bf16<2, 1>(args, tile, row, height);
      } else if (two_columns) {
        multiply_bf16<1, 2>(args, tile, row, height, ahead);
      } else {
        multiply_bf16<1, 1>(args, tile, row, height);
      }
    }
  }
}

void matmul_bf16_amx(const MatmulArgs& args) {
  const int height = row_tile_height(args.n_rows);
  if (height == 0) return;
  const TileShape shape(height, kGroup * 2, kGroup / 2);
  const int n_row_tiles = row_tiles(args.n_rows);
  for (int first = 0; first < n_row_tiles; first += kMostRowTilesBf16) {
    const int left = n_row_tiles - first;
    const int n = left < kMostRowTilesBf16 ? left : kMostRowTilesBf16;
    if (n == 1) {
      multiply_bf16_row_tile(args, first * height, height);
    } else {
      multiply_bf16_row_tiles(args, first, n, height);
    }
  }
}

// The vector table's integer products are never used here, only its other slots.
struct NoDots {
  static constexpr int kMaxRows = 1;
  static constexpr int kFixedWayRows = 1;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes / kMostStreams;
  template <class Codes, int kParts, int R, int T, class Use>
  static void dots(const GroupWeights&, const GroupInputs&, const Use&) {}
};

struct NoWords : WordNumbers {
  static constexpr int kRows = 1;
  static constexpr int vectors(int) { return 1; }
  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte*, std::size_t, int, const Rows&, const Ahead&, const Use&) {}
};

// The formats of files are multiplied by vectors: their codes want unpacking first.
template <class... Formats>
constexpr void set_stored_matmuls(KernelTable& table, FormatList<Formats...>) {
  ((table.formats[static_cast<int>(Formats::kKind)].matmul = matmul_stored_vnni<Formats::kKind>),
   ...);
}

constexpr KernelTable make_amx_table() {
  KernelTable table = make_table<Vector, NoDots, NoWords>("amx");
  table.attend[static_cast<int>(KvKind::int8)] = attend_int8_amx;
  table.formats[static_cast<int>(WeightKind::bf16)] = {ActivationForm::bf16, tile_bytes_bf16_pairs,
                                                       pack_tile_bf16_pairs, matmul_bf16_amx};
  table.formats[static_cast<int>(WeightKind::int8)].matmul = matmul_quantized_amx<WeightKind::int8>;
  table.formats[static_cast<int>(WeightKind::int4)].matmul = matmul_quantized_amx<WeightKind::int4>;
  set_stored_matmuls(table, StoredFormats{});
  table.round_row = round_row<Vector>;
  table.attend_bf16_pairs = attend_bf16_amx;
  return table;
}

}  // namespace

constinit const KernelTable kAmxTable = make_amx_table();

}  // namespace outrider::kernels
#endif  // __x86_64__
