// SPDX-License-Identifier: Apache-2.0
// A hash map from 64-bit keys to small values, filled once and then only read: open addressing with
// linear probing, at most half full, so that a look-up reads one or two cache lines. Thread-safe to
// read.
#ifndef OUTRIDER_TOKENIZER_MERGING_INTEGER_MAP_H_
#define OUTRIDER_TOKENIZER_MERGING_INTEGER_MAP_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace outrider {

template <typename Value>
class IntegerMap {
 public:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};  // not allowed as a key

  // Allocates for n_keys keys.
  explicit IntegerMap(std::size_t n_keys = 0)
      : slots_(std::bit_ceil(2 * n_keys + 2)), mask_(slots_.size() - 1) {}
  // Inserts or overwrites.
  void set(std::uint64_t key, const Value& value) {
    Slot& slot = slots_[find_slot(key)];
    n_keys_ += slot.key == kEmpty;
    slot.key = key;
    slot.value = value;
  }
  const Value* find(std::uint64_t key) const {
    const Slot& slot = slots_[find_slot(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  std::size_t size() const { return n_keys_; }
  template <typename Function>
  void for_each(Function&& function) const {
    for (const Slot& slot : slots_) {
      if (slot.key != kEmpty) function(slot.key, slot.value);
    }
  }

 private:
  struct Slot {
    std::uint64_t key = kEmpty;
    Value value{};
  };
  std::size_t find_slot(std::uint64_t key) const {
    // Fibonacci hashing: the odd number nearest to 2^64 / golden ratio spreads keys over the high
    // bits; the fold moves those to the bits of the mask.
    std::uint64_t hash = key * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    std::size_t at = hash & mask_;
    while (slots_[at].key != key && slots_[at].key != kEmpty) at = (at + 1) & mask_;
    return at;
  }
  std::vector<Slot> slots_;
  std::size_t mask_;
  std::size_t n_keys_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_MERGING_INTEGER_MAP_H_
