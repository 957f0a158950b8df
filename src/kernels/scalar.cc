// The table for any machine, and the reference that the others must equal bit for bit.
#include "kernels/algorithms.h"
#include "kernels/vector_scalar.h"

namespace outrider::kernels {
namespace {

struct ScalarDots {
  static constexpr int kMaxRows = 1;
  static constexpr int kFixedWayRows = 1;
  static constexpr std::size_t kOneRowAhead = kPrefetchBytes;

  // weight(quad, place): the integer at that place (column * 4 + element) of a row of quads.
  template <int R, class Weight>
  static void multiply(Weight weight, const GroupInputs& inputs, Vector (&dots)[R]) {
    for (int r = 0; r < R; ++r) {
      for (int column = 0; column < kTileColumns; ++column) {
        std::int32_t sum = 0;
        for (int i = 0; i < kGroup; ++i) {
          sum += weight(i / kQuad, column * kQuad + i % kQuad) * inputs.row(r)[i];
        }
        dots[r].lane[column] = static_cast<float>(sum);
      }
    }
  }

  template <int R>
  static void int8(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto weight = [=](int quad, int place) {
      return static_cast<int>(static_cast<std::int8_t>(weights[quad * kRowBytes + place]));
    };
    multiply(weight, inputs, dots);
  }

  template <int R>
  static void int4(const std::byte* weights, const GroupInputs& inputs, Vector (&dots)[R]) {
    const auto weight = [=](int quad, int place) {
      const int half = quad % (kQuads / 2);
      const auto byte = static_cast<unsigned char>(weights[half * kRowBytes + place]);
      return quad == half ? byte & 15 : byte >> 4;
    };
    multiply(weight, inputs, dots);
  }
};

struct ScalarWords : WordNumbers {
  static constexpr int kRows = 1;
  static constexpr int vectors(int) { return 1; }

  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte* cells, std::size_t row_bytes, int n, const Rows& rows,
                   const Ahead&, const Use& use) {
    static_assert(R == 1 && T == 1);
    constexpr int kPlaces[] = {0, 2, 1, 3};  // of a cell's elements (kv_layout.h)
    Vector dots;
    for (int column = 0; column < kLanes; ++column) {
      std::int32_t sum = 0;
      for (int i = 0; i < n; ++i) {
        const std::byte* cell = cells + static_cast<std::size_t>(i / 4) * row_bytes + column * 4;
        sum += static_cast<std::int8_t>(cell[kPlaces[i % 4]]) * rows.at(0)[i];
      }
      dots.lane[column] = static_cast<float>(sum);
    }
    use(0, 0, dots);
  }
};

}  // namespace

constinit const KernelTable kScalarTable =
    make_table<Vector, TileByTile<Vector, ScalarDots>, ScalarWords>("scalar");

}  // namespace outrider::kernels
