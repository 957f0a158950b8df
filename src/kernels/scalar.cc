// The table for any machine, and the reference that the others must equal bit for bit.
#include "kernels/algorithms.h"

namespace outrider::kernels {
namespace {

float from_bf16(std::uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(std::uint32_t, magnitude));
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffU : exponent + 112;
  return __builtin_bit_cast(float, sign | (wide << 23) | (mantissa << 13));
}

// Plain loops over 16 lanes.
struct Vector {
  // Nothing to gain from many rows at once here; these keep the code small.
  static constexpr int kAccumulators = 4;
  static constexpr int kMaxRows = 4;

  float lane[kLanes];

  template <class Function>
  static Vector from(Function function) {
    Vector result;
    for (int i = 0; i < kLanes; ++i) result.lane[i] = function(i);
    return result;
  }
  static Vector zero() { return broadcast(0.0F); }
  static Vector broadcast(float value) {
    return from([=](int) { return value; });
  }
  static Vector load(const float* p) {
    return from([=](int i) { return p[i]; });
  }
  static Vector load(const std::uint16_t* p) {
    return from([=](int i) { return from_bf16(p[i]); });
  }
  static Vector load_f16(const std::uint16_t* p) {
    return from([=](int i) { return from_f16(p[i]); });
  }
  void store(float* p) const {
    for (int i = 0; i < kLanes; ++i) p[i] = lane[i];
  }
  void store_int8(std::int8_t* p) const {
    for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(lane[i]);
  }
};

Vector operator+(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] + b.lane[i]; });
}
Vector operator-(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] - b.lane[i]; });
}
Vector operator*(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] * b.lane[i]; });
}
Vector operator/(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] / b.lane[i]; });
}
Vector fma(const Vector& a, const Vector& b, const Vector& c) {
  return Vector::from([&](int i) { return __builtin_fmaf(a.lane[i], b.lane[i], c.lane[i]); });
}
Vector max(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] > b.lane[i] ? a.lane[i] : b.lane[i]; });
}
Vector min(const Vector& a, const Vector& b) {
  return Vector::from([&](int i) { return a.lane[i] < b.lane[i] ? a.lane[i] : b.lane[i]; });
}
Vector absolute(const Vector& a) {
  return Vector::from([&](int i) { return __builtin_fabsf(a.lane[i]); });
}
Vector shift_left_23(const Vector& a) {
  return Vector::from([&](int i) {
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, a.lane[i]) << 23);
  });
}

float reduce_add(Vector a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.lane[i] += a.lane[i + width];
  }
  return a.lane[0];
}
float reduce_max(Vector a) {
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      a.lane[i] = a.lane[i] > a.lane[i + width] ? a.lane[i] : a.lane[i + width];
    }
  }
  return a.lane[0];
}

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

}  // namespace

constinit const KernelTable kScalarTable = make_table<Vector, ScalarDots>("scalar");

}  // namespace outrider::kernels
