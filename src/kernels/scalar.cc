// The table for any machine, and the reference that the others must equal bit for bit.
#include "kernels/algorithms.h"
#include "kernels/vector_scalar.h"

namespace outrider::kernels {
namespace {

struct ScalarDots {
  static constexpr int kMaxRows = 1;

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

struct ScalarWords {
  using Stored = std::int8_t;
  using Word = std::int16_t;
  static constexpr int kRows = 1;
  static constexpr int kVectors = 1;
  static constexpr int kPairsTogether = 1;
  static constexpr int kKeyDims = 2;
  static constexpr int kValueDims = kLanes;

  static void lay_keys(const std::int8_t* const (&keys)[kLanes], std::int16_t* to, int) {
    for (int i = 0; i < kLanes; ++i) {
      for (int d = 0; d < 2; ++d) to[2 * i + d] = keys[i][d];
    }
  }
  static void lay_values(const std::int8_t* first, const std::int8_t* second, std::int16_t* to) {
    for (int i = 0; i < kLanes; ++i) {
      to[2 * i] = first[i];
      to[2 * i + 1] = second[i];
    }
  }
  template <int R, int T>
  static void dots(const std::int16_t* columns, int stride, int n_pairs, const std::int16_t* rows,
                   int, Vector (&dots)[R][T]) {
    static_assert(R == 1 && T == 1);
    for (int column = 0; column < kLanes; ++column) {
      std::int32_t sum = 0;
      for (int i = 0; i < 2 * n_pairs; ++i) {
        sum += columns[i / 2 * stride + 2 * column + i % 2] * rows[i];
      }
      dots[0][0].lane[column] = static_cast<float>(sum);
    }
  }
};

}  // namespace

constinit const KernelTable kScalarTable = make_table<Vector, ScalarDots, ScalarWords>("scalar");

}  // namespace outrider::kernels
