// SPDX-License-Identifier: Apache-2.0
// The concepts of what an instruction set's file defines (float_vector.h, group_dots.h,
// products_and_numbers.h, int8_attention.h) require all that the algorithms use: types that have
// nothing else can be made into a table. And they require each member: types that lack one do not
// satisfy them. Compiling this file is the test. (After the first member that fails, GCC lists
// more.)
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/algorithms.h"
#include "kernels/attention/bf16_attention.h"

namespace outrider::kernels {
namespace {

// In the place of a type or a number that is lacking.
struct Absent {
  constexpr explicit Absent(auto) {}
};
template <bool kLacks, class Type>
using Unless = std::conditional_t<kLacks, Absent, Type>;

// Instantiates Check for each member after the first, which stands for none that is lacking.
template <class Member, template <Member> class Check, std::size_t... kIndex>
constexpr bool check_each(std::index_sequence<kIndex...>) {
  return (Check<static_cast<Member>(kIndex + 1)>::kDone && ...);
}

// --- Vectors ------------------------------------------------------------------------------------

enum class OfVector {
  none,
  max_rows,
  accumulators,
  one_row_tiles,
  sums_beside_inputs,
  attention_sums,
  states_weighed,
  doubles,
  plus,
  minus,
  times,
  divided,
  fma,
  max,
  min,
  absolute,
  shift_left_23,
  reduce_add,
  reduce_max,
  zero,
  broadcast,
  broadcast_anew,
  load,
  load_first,
  load_f16,
  load_bytes,
  load_signed_bytes,
  load_even,
  load_odd,
  load_mixed_f32,
  load_mixed_bf16,
  in_order_f32,
  in_order_bf16,
  store,
  store_first,
  store_int8,
  store_int16,
  integers,
  integers_zero,
  integers_add_exact,
  integers_rounded,
  multiply_low_halves,
  store_bf16,
  count
};

template <OfVector kLacks>
struct SomeVector {
  using Of = OfVector;
  static constexpr Unless<kLacks == Of::max_rows, int> kMaxRows{4};
  static constexpr Unless<kLacks == Of::accumulators, int> kAccumulators{4};
  static constexpr Unless<kLacks == Of::one_row_tiles, int> kOneRowTiles{2};
  static constexpr Unless<kLacks == Of::sums_beside_inputs, int> kSumsBesideInputs{3};
  static constexpr Unless<kLacks == Of::attention_sums, int> kAttentionSums{4};
  static constexpr Unless<kLacks == Of::states_weighed, int> kStatesWeighed{1};
  static constexpr Unless<kLacks == Of::doubles, int> kDoubles{2};

  struct Sums {
    static Sums zero() requires(kLacks != Of::integers_zero) { return {}; }
    void add_exact(const SomeVector&) requires(kLacks != Of::integers_add_exact) {}
    SomeVector rounded() const requires(kLacks != Of::integers_rounded) { return {}; }
  };
  using Integers = Unless<kLacks == Of::integers, Sums>;

  static SomeVector zero() requires(kLacks != Of::zero) { return {}; }
  static SomeVector broadcast(float) requires(kLacks != Of::broadcast) { return {}; }
  static SomeVector broadcast_anew(const float*) requires(kLacks != Of::broadcast_anew) {
    return {};
  }
  static SomeVector load(const float*) requires(kLacks != Of::load) { return {}; }
  static SomeVector load_first(const float*, int) requires(kLacks != Of::load_first) { return {}; }
  static SomeVector load_f16(const std::uint16_t*) requires(kLacks != Of::load_f16) { return {}; }
  static SomeVector load_bytes(const std::byte*) requires(kLacks != Of::load_bytes) { return {}; }
  static SomeVector load_signed_bytes(const std::byte*) requires(kLacks != Of::load_signed_bytes) {
    return {};
  }
  static SomeVector load_even(const std::uint16_t*) requires(kLacks != Of::load_even) { return {}; }
  static SomeVector load_odd(const std::uint16_t*) requires(kLacks != Of::load_odd) { return {}; }
  static SomeVector load_mixed(const float*) requires(kLacks != Of::load_mixed_f32) { return {}; }
  static SomeVector load_mixed(const std::uint16_t*) requires(kLacks != Of::load_mixed_bf16) {
    return {};
  }
  template <class Element>
  static SomeVector in_order(SomeVector) requires(kLacks != (sizeof(Element) == 4
                                                                 ? Of::in_order_f32
                                                                 : Of::in_order_bf16)) {
    return {};
  }
  void store(float*) const requires(kLacks != Of::store) {}
  void store_first(float*, int) const requires(kLacks != Of::store_first) {}
  void store_int8(std::int8_t*) const requires(kLacks != Of::store_int8) {}
  void store_int16(std::int16_t*) const requires(kLacks != Of::store_int16) {}
  void store_bf16(std::uint16_t*) const requires(kLacks != Of::store_bf16) {}
  template <class Bits>
  static Bits multiply_low_halves(Bits, Bits) requires(kLacks != Of::multiply_low_halves) {
    return Bits{};
  }
};

template <OfVector kLacks, OfVector kMember, class Result>
using UnlessLacking = std::enable_if_t<kLacks != kMember, Result>;
template <OfVector kLacks, OfVector kMember>
using VectorUnless = UnlessLacking<kLacks, kMember, SomeVector<kLacks>>;

template <OfVector kLacks>
VectorUnless<kLacks, OfVector::plus> operator+(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::minus> operator-(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::times> operator*(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::divided> operator/(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::fma> fma(SomeVector<kLacks>, SomeVector<kLacks>,
                                        SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::max> max(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::min> min(SomeVector<kLacks>, SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::absolute> absolute(SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
VectorUnless<kLacks, OfVector::shift_left_23> shift_left_23(SomeVector<kLacks>) {
  return {};
}
template <OfVector kLacks>
UnlessLacking<kLacks, OfVector::reduce_add, float> reduce_add(SomeVector<kLacks>) {
  return 0;
}
template <OfVector kLacks>
UnlessLacking<kLacks, OfVector::reduce_max, float> reduce_max(SomeVector<kLacks>) {
  return 0;
}

using V = SomeVector<OfVector::none>;
static_assert(Bf16Vector<V>);
static_assert(FloatVector<SomeVector<OfVector::store_bf16>>, "only bf16 products need it");

template <OfVector kLacks>
struct VectorsNeed {
  static_assert(!Bf16Vector<SomeVector<kLacks>>);
  static constexpr bool kDone = true;
};
static_assert(check_each<OfVector, VectorsNeed>(
    std::make_index_sequence<static_cast<std::size_t>(OfVector::count) - 1>{}));

// --- Dot products of groups ---------------------------------------------------------------------

enum class OfDots { none, max_rows, fixed_way_rows, one_row_ahead, dots, count };

template <OfDots kLacks>
struct SomeRowCounts {
  static constexpr Unless<kLacks == OfDots::max_rows, int> kMaxRows{5};
  static constexpr Unless<kLacks == OfDots::fixed_way_rows, int> kFixedWayRows{2};
  static constexpr Unless<kLacks == OfDots::one_row_ahead, std::size_t> kOneRowAhead{64};
};

template <OfDots kLacks>
struct SomeDots : SomeRowCounts<kLacks> {
  template <class Codes, int kParts, int R, int T, class Inputs, class Use>
  static void dots(const GroupWeights& weights, const Inputs& inputs,
                   const Use& use) requires(kLacks != OfDots::dots) {
    if (weights.tile(0) == nullptr || inputs.row(0) == nullptr) return;
    if (inputs.template sum<kParts>(0, 0) == 0) return;
    const V dots[kParts][R] = {};
    use(0, dots);
  }
};

template <OfDots kLacks>
struct SomeOneTileDots : SomeRowCounts<kLacks> {
  template <class Codes, int kParts, int R, class Inputs>
  static void dots(const std::byte*, const Inputs&,
                   V (&dots)[kParts][R]) requires(kLacks != OfDots::dots) {
    dots[0][0] = V::zero();
  }
};

static_assert(GroupDots<SomeDots<OfDots::none>, V>);
static_assert(GroupDots<FourRows<SomeDots<OfDots::none>>, V>);
static_assert(OneTileDots<SomeOneTileDots<OfDots::none>, V>);
static_assert(GroupDots<TileByTile<V, SomeOneTileDots<OfDots::none>>, V>);
static_assert(!OneTileDots<SomeOneTileDots<OfDots::none>, SomeVector<OfVector::fma>>,
              "dots are of another vector");

template <OfDots kLacks>
struct DotsNeed {
  static_assert(!GroupDots<SomeDots<kLacks>, V>);
  static_assert(!OneTileDots<SomeOneTileDots<kLacks>, V>);
  static constexpr bool kDone = true;
};
static_assert(check_each<OfDots, DotsNeed>(
    std::make_index_sequence<static_cast<std::size_t>(OfDots::count) - 1>{}));

// --- Products of attention ----------------------------------------------------------------------

enum class OfProducts {
  none,
  kind,
  rows,
  vectors,
  dots,
  number,
  together,
  digits,
  to_digits,
  count
};

template <OfProducts kLacks, KvKind kTheKind>
struct SomeProducts {
  using Of = OfProducts;
  static constexpr Unless<kLacks == Of::kind, KvKind> kKind{kTheKind};
  static constexpr Unless<kLacks == Of::rows, int> kRows{2};
  static constexpr int vectors(int) requires(kLacks != Of::vectors) { return 1; }
  template <int R, int T, class Rows, class Ahead, class Use>
  static void dots(const std::byte*, std::size_t, int, const Rows& rows, const Ahead& ahead,
                   const Use& use) requires(kLacks != Of::dots) {
    ahead.template row<T>(0);
    if (rows.at(0) != nullptr) use(0, 0, V::zero());
  }
};

// Words as they are, and in digits.
template <OfProducts kLacks>
struct SomeWords : SomeProducts<kLacks, KvKind::int8> {
  using Number = Unless<kLacks == OfProducts::number, std::int16_t>;
  static constexpr Unless<kLacks == OfProducts::together, int> kTogether{16};
  static constexpr Unless<kLacks == OfProducts::digits, int> kDigits{1};
};
template <OfProducts kLacks>
struct SomeDigits : SomeProducts<kLacks, KvKind::int8> {
  using Number = Unless<kLacks == OfProducts::number, std::int8_t>;
  static constexpr Unless<kLacks == OfProducts::together, int> kTogether{32};
  static constexpr Unless<kLacks == OfProducts::digits, int> kDigits{2};
  static void to_digits(const std::int16_t*, int,
                        std::int8_t*) requires(kLacks != OfProducts::to_digits) {}
};

using Bf16Rows = StridedRows<std::uint16_t>;
template <OfProducts kLacks>
using SomePairs = SomeProducts<kLacks, KvKind::bf16>;

static_assert(AttentionDots<SomePairs<OfProducts::none>, V, Bf16Rows>);
static_assert(WordDots<SomeWords<OfProducts::none>, V>);
static_assert(WordDots<SomeWords<OfProducts::to_digits>, V>, "words need no digits");
static_assert(WordDots<SomeDigits<OfProducts::none>, V>);
struct OtherKind : SomeWords<OfProducts::none> {
  static constexpr KvKind kKind = KvKind::bf16;
};
static_assert(!WordDots<OtherKind, V>);

template <OfProducts kLacks>
struct ProductsNeed {
  static constexpr bool kOfWords = kLacks > OfProducts::dots;
  static_assert(kOfWords || !AttentionDots<SomePairs<kLacks>, V, Bf16Rows>);
  static_assert(kLacks == OfProducts::to_digits || !WordDots<SomeWords<kLacks>, V>);
  static_assert(!WordDots<SomeDigits<kLacks>, V>);
  static constexpr bool kDone = true;
};
static_assert(check_each<OfProducts, ProductsNeed>(
    std::make_index_sequence<static_cast<std::size_t>(OfProducts::count) - 1>{}));

// --- Numbers of attention -----------------------------------------------------------------------

enum class OfNumbers {
  none,
  weight,
  constructor,
  query,
  queries,
  begin_keys,
  score,
  begin_values,
  weights,
  sum,
  count
};

template <OfNumbers kLacks>
class SomeNumbers {
 public:
  using Of = OfNumbers;
  struct SomeWeight {
    static V of(V x) requires(kLacks != Of::weight) { return x; }
  };
  using Weight = SomeWeight;

  SomeNumbers(const AttendArgs&, const KvLayout&) requires(kLacks != Of::constructor) {}
  void query(int, const float*) requires(kLacks != Of::query) {}
  Bf16Rows queries(int) requires(kLacks != Of::queries) { return {}; }
  void begin_keys(const std::byte*) requires(kLacks != Of::begin_keys) {}
  V score(int, int, const V&) requires(kLacks != Of::score) { return {}; }
  void begin_values(const std::byte*, int) requires(kLacks != Of::begin_values) {}
  template <int R>
  Bf16Rows weights(const float (*)[kChunkKeys]) requires(kLacks != Of::weights) {
    return {};
  }
  V sum(int, const V&, const V&) requires(kLacks != Of::sum) { return {}; }
};

static_assert(AttentionNumbers<SomeNumbers<OfNumbers::none>, V, SomePairs<OfProducts::none>>);
static_assert(!AttentionNumbers<FloatNumbers<V>, V, SomePairs<OfProducts::dots>>,
              "products that do not take these rows");

template <OfNumbers kLacks>
struct NumbersNeed {
  static_assert(!AttentionNumbers<SomeNumbers<kLacks>, V, SomePairs<OfProducts::none>>);
  static constexpr bool kDone = true;
};
static_assert(check_each<OfNumbers, NumbersNeed>(
    std::make_index_sequence<static_cast<std::size_t>(OfNumbers::count) - 1>{}));

// --- All algorithms -----------------------------------------------------------------------------

using OneTile = TileByTile<V, SomeOneTileDots<OfDots::none>>;
static_assert(make_table<V, SomeDots<OfDots::none>, SomeWords<OfProducts::none>>("dots").name[0] ==
              'd');
static_assert(make_table<V, OneTile, SomeDigits<OfProducts::none>>("one tile").name[0] == 'o');

constexpr bool attends(void (*attend)(const AttendArgs&)) { return attend != nullptr; }
static_assert(attends(attend_with<V, SomePairs<OfProducts::none>, SomeNumbers<OfNumbers::none>>));
static_assert(attends(
    attend_with<V, SomePairs<OfProducts::none>, Bf16Numbers<V, SomePairs<OfProducts::none>>>));

}  // namespace
}  // namespace outrider::kernels
