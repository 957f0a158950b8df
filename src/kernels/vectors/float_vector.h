// SPDX-License-Identifier: Apache-2.0
// What the kernels' algorithms require of an instruction set's vector: a type of sixteen floats, by
// convention V. The concepts name all that they use, and nothing else (concepts_test.cc).
//
// Lane i is element i of what is loaded, unless a member says otherwise. Addresses need no
// alignment. Internal linkage, as everything compiled with instruction-set flags.
#ifndef OUTRIDER_KERNELS_VECTORS_FLOAT_VECTOR_H_
#define OUTRIDER_KERNELS_VECTORS_FLOAT_VECTOR_H_

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "kernels/double_functions.h"

namespace outrider::kernels {
namespace {

template <int n>
concept Positive = (n > 0);
template <int n>
concept PowerOfTwo = (n > 0 && (n & (n - 1)) == 0);

// What arrays of sums need. (std::semiregular would instantiate functions of the standard library.)
template <class T>
concept Value = requires(T to, const T from) {
  T();
  T(from);
  to = from;
};

// How many values the registers hold.
template <class V>
concept RegisterCounts = requires {
  requires Positive<V::kMaxRows>;           // rows of a product with one tile (f32, bf16 weights)
  requires Positive<V::kAccumulators>;      // sums of a product with several tiles
  requires Positive<V::kOneRowTiles>;       // tiles that one row takes together
  requires Positive<V::kSumsBesideInputs>;  // with more sums, inputs are read by broadcast_anew
  requires PowerOfTwo<V::kAttentionSums>;   // sums of products with keys or values
  requires V::kAttentionSums >= 4;
  requires PowerOfTwo<V::kStatesWeighed>;  // queries whose scores become weights together
  requires PowerOfTwo<V::kDoubles>;        // doubles processed together
};

template <class V>
concept FloatArithmetic = requires(const V a, const V b, const V c) {
  { a + b } -> std::same_as<V>;
  { a - b } -> std::same_as<V>;
  { (a * b) } -> std::same_as<V>;
  { a / b } -> std::same_as<V>;
  { fma(a, b, c) } -> std::same_as<V>;       // a * b + c, rounded once
  { max(a, b) } -> std::same_as<V>;          // a > b ? a : b, so a NaN in b passes (as on x86)
  { min(a, b) } -> std::same_as<V>;          // a < b ? a : b
  { absolute(a) } -> std::same_as<V>;        // |a|
  { shift_left_23(a) } -> std::same_as<V>;   // of the bits
  { reduce_add(a) } -> std::same_as<float>;  // the sum of all lanes, by the tree of table.h
  { reduce_max(a) } -> std::same_as<float>;  // the largest lane
};

template <class V>
concept FloatLoads = requires(float value, const float* floats, const std::uint16_t* halves,
                              const std::byte* bytes, int n, const V mixed) {
  { V::zero() } -> std::same_as<V>;
  { V::broadcast(value) } -> std::same_as<V>;          // in every lane
  { V::broadcast_anew(floats) } -> std::same_as<V>;    // floats[0], loaded where it is used
  { V::load(floats) } -> std::same_as<V>;              // sixteen
  { V::load_first(floats, n) } -> std::same_as<V>;     // n < 16, zeros after them
  { V::load_f16(halves) } -> std::same_as<V>;          // sixteen f16
  { V::load_bytes(bytes) } -> std::same_as<V>;         // sixteen unsigned bytes
  { V::load_signed_bytes(bytes) } -> std::same_as<V>;  // sixteen signed bytes
  { V::load_even(halves) } -> std::same_as<V>;         // the first of each of sixteen bf16 pairs
  { V::load_odd(halves) } -> std::same_as<V>;          // and the second
  { V::load_mixed(floats) } -> std::same_as<V>;        // sixteen f32 weights, in any order
  { V::load_mixed(halves) } -> std::same_as<V>;        // sixteen bf16 weights, in any order
  { V::template in_order<float>(mixed) } -> std::same_as<V>;          // lanes in order, of results
  { V::template in_order<std::uint16_t>(mixed) } -> std::same_as<V>;  // from load_mixed
};

template <class V>
concept FloatStores = requires(const V a, float* floats, std::int8_t* bytes, std::int16_t* words,
                               int n) {
  a.store(floats);           // sixteen
  a.store_first(floats, n);  // n < 16, no others
  a.store_int8(bytes);       // of integers in -128..127
  a.store_int16(words);      // of floats in the range of int16, rounded to nearest even
};

// Sums of exact floats in sixteen integers of 32 bits: V::Integers.
template <class Sums, class V>
concept IntegerSums = Value<Sums> && requires(Sums sums, const Sums result, const V exact) {
  { Sums::zero() } -> std::same_as<Sums>;
  sums.add_exact(exact);                    // integers, lane by lane
  { result.rounded() } -> std::same_as<V>;  // once, to nearest even
};

// Integers of 64 bits, as many as doubles are processed together.
template <class V>
concept WordProducts = requires(typename Doubles<V::kDoubles>::Bits words) {
  words = V::multiply_low_halves(words, words);  // the lower 32 bits of each, to 64 bits
};

template <class V>
concept FloatVector = Value<V> && RegisterCounts<V> && FloatArithmetic<V> && FloatLoads<V> &&
    FloatStores<V> && IntegerSums<typename V::Integers, V> && WordProducts<V>;

// Of instruction sets with bf16 products.
template <class V>
concept Bf16Vector = FloatVector<V> && requires(const V a, std::uint16_t* halves) {
  a.store_bf16(halves);  // of floats that bf16 can represent
};

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_VECTORS_FLOAT_VECTOR_H_
