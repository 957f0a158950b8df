// SPDX-License-Identifier: Apache-2.0
// Attention calls for tests: a KV cache in scattered pages, the rows that read it, and the tables
// that implement an arithmetic.
#ifndef OUTRIDER_TESTS_SUPPORT_ATTEND_CALLS_H_
#define OUTRIDER_TESTS_SUPPORT_ATTEND_CALLS_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/float16.h"
#include "kernels/attention/kv_layout.h"
#include "kernels/attention/whole_attention.h"
#include "kernels/table.h"
#include "tests/support/kernel_tables.h"

namespace outrider::kernels {
namespace {

constexpr int kMaxQueries = 9;  // more than one kernel call handles together

// How a table computes with keys and values of some kind.
struct Arithmetic {
  KvKind kv;
  bool pairs = false;  // attend_bf16_pairs

  auto of(const KernelTable& table) const {
    return pairs ? table.attend_bf16_pairs : table.attend[static_cast<int>(kv)];
  }
  // The table whose bits `table` must reproduce in this arithmetic.
  const KernelTable& reference(const KernelTable& table) const {
    return pairs ? table : kScalarTable;
  }
};
constexpr Arithmetic kArithmetics[] = {
    {KvKind::f32}, {KvKind::bf16}, {KvKind::int8}, {KvKind::bf16, true}};

// Not every test uses it.
inline bool takes(const Arithmetic& arithmetic, int head_dim) {
  return head_dim <= kMaxRoundedHeadDim || (arithmetic.kv != KvKind::int8 && !arithmetic.pairs);
}

std::vector<test::NamedTable> tables_with(const Arithmetic& arithmetic) {
  std::vector<test::NamedTable> tables = test::runnable_tables();
  std::erase_if(tables, [&](const auto& named) { return arithmetic.of(*named.table) == nullptr; });
  return tables;
}

struct Call {
  Arithmetic arithmetic{KvKind::f32};
  AttendArgs args{};
  std::vector<AttendRow> rows;
  std::vector<float> sinks;  // (n_queries), or empty

  void run(const KernelTable& table) {
    args.rows = rows.data();
    const std::size_t n = rows.size() * static_cast<std::size_t>(args.n_queries);
    std::vector<float> sums(n * static_cast<std::size_t>(args.head_dim));
    std::vector<AttendState> states(2 * n);
    const std::vector<float> zeros(static_cast<std::size_t>(args.head_dim));
    const float* const logits = sinks.empty() ? nullptr : sinks.data();
    attend_whole(table, arithmetic.of(table), args, {sums.data(), states.data()},
                 {.logits = logits, .zeros = zeros.data()});
  }
};

// Slots with keys and values of two heads, of which the second is used, in pages scattered over the
// memory. Unwritten memory holds NaN.
class Cache {
 public:
  Cache(const Arithmetic& read_by, int head_dim, int n_slots)
      : arithmetic(read_by),
        layout{read_by.kv, head_dim},
        n_pages_((n_slots + kChunkKeys - 1) / kChunkKeys),
        memory_(static_cast<std::size_t>(n_pages_) * page_bytes() + kLine, kUnwritten),
        scratch_(2 * layout.block_bytes() + kLine, kUnwritten) {
    for (int page = 0; page < n_pages_; ++page) chunks_.push_back(block(page, 0));
  }

  // Stores x (head_dim) in a slot; returns the slot's contents.
  std::vector<float> store_key(int slot, const std::vector<float>& x) {
    return store(slot, x, 1, kScalarTable.store_key);
  }
  std::vector<float> store_value(int slot, const std::vector<float>& x) {
    return store(slot, x, kHeads + 1, kScalarTable.store_value);
  }
  // Copies the given slots of another cache, in this order, to slots 0, 1, ... of this one.
  void copy(const Cache& other, const std::vector<int>& slots) {
    for (int i = 0; i < static_cast<int>(slots.size()); ++i) {
      const int slot = slots[static_cast<std::size_t>(i)];
      layout.copy_key(other.block(slot / kChunkKeys, 1), slot % kChunkKeys,
                      block(i / kChunkKeys, 1), i % kChunkKeys);
      layout.copy_value(other.block(slot / kChunkKeys, kHeads + 1), slot % kChunkKeys,
                        block(i / kChunkKeys, kHeads + 1), i % kChunkKeys);
    }
  }

  // A call without rows.
  Call call(int n_queries) {
    Call call;
    call.arithmetic = arithmetic;
    AttendArgs& args = call.args;
    args.n_queries = n_queries;
    args.head_dim = layout.head_dim;
    args.query_stride = static_cast<std::size_t>(layout.head_dim) + 1;
    args.out_stride = static_cast<std::size_t>(layout.head_dim) + 2;
    args.scale = 1 / std::sqrt(static_cast<float>(layout.head_dim));
    args.chunks = chunks_.data();
    args.keys_at = layout.block_bytes();
    args.values_at = (kHeads + 1) * layout.block_bytes();
    args.scratch = on_line(scratch_);
    return call;
  }
  // A call of one row, complete.
  Call call(const std::vector<float>& queries, int n_queries, int n_keys, std::vector<float>& out) {
    Call one = call(n_queries);
    out.assign(static_cast<std::size_t>(n_queries) * one.args.out_stride, 777.0F);
    one.args.n_rows = 1;
    one.rows = {{.queries = queries.data(),
                 .out = out.data(),
                 .states = nullptr,
                 .n_keys = n_keys,
                 .first_key = 0,
                 .n_contiguous = n_keys,
                 .slots = nullptr}};
    return one;
  }

  const Arithmetic arithmetic;
  const KvLayout layout;

 private:
  static constexpr int kHeads = 2;
  static constexpr std::size_t kLine = 64;
  static constexpr std::byte kUnwritten{0xff};  // NaN in f32 and bf16, and as a scale

  std::size_t page_bytes() const { return 2 * kHeads * layout.block_bytes(); }
  static std::byte* on_line(const std::vector<std::byte>& memory) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    return const_cast<std::byte*>(memory.data()) + (kLine - at % kLine) % kLine;
  }
  // Pages are in reverse order.
  std::byte* block(int page, std::size_t i) const {
    return on_line(memory_) + static_cast<std::size_t>(n_pages_ - 1 - page) * page_bytes() +
           i * layout.block_bytes();
  }
  template <class Store>
  std::vector<float> store(int slot, const std::vector<float>& x, std::size_t at,
                           const Store& stores) {
    std::byte* to = block(slot / kChunkKeys, at);
    const int token = slot % kChunkKeys;
    stores[static_cast<int>(layout.kind)](x.data(), layout.head_dim, to, token);
    std::vector<float> held;
    for (int dim = 0; dim < layout.head_dim; ++dim) {
      const std::byte* element =
          to + (at == 1 ? layout.key_at(token, dim) : layout.value_at(token, dim));
      float scale = 1;
      if (layout.kind == KvKind::f32) std::memcpy(&held.emplace_back(), element, sizeof(float));
      if (layout.kind == KvKind::bf16) {
        Bf16 bits;
        std::memcpy(&bits.bits, element, sizeof bits.bits);
        held.push_back(to_float(bits));
      }
      if (layout.kind == KvKind::int8) {
        std::memcpy(&scale, to + layout.scale_at(token), sizeof scale);
        held.push_back(static_cast<float>(static_cast<std::int8_t>(*element)) * scale);
      }
    }
    return held;
  }

  int n_pages_;
  std::vector<std::byte> memory_;
  std::vector<std::byte> scratch_;
  std::vector<const void*> chunks_;
};

// A full cache, with its contents.
struct FullCache : Cache {
  std::vector<float> keys, values;  // (n, head_dim)

  FullCache(const Arithmetic& read_by, int head_dim, int n, unsigned seed)
      : Cache(read_by, head_dim, n) {
    const auto dim = static_cast<std::size_t>(head_dim);
    const std::vector<float> all =
        test::awkward_floats(2 * static_cast<std::size_t>(n) * dim, seed);
    for (int slot = 0; slot < n; ++slot) {
      const auto from =
          all.begin() + static_cast<std::ptrdiff_t>(2 * static_cast<std::size_t>(slot) * dim);
      const auto middle = from + head_dim;
      const std::vector<float> key = store_key(slot, {from, middle});
      const std::vector<float> value = store_value(slot, {middle, middle + head_dim});
      keys.insert(keys.end(), key.begin(), key.end());
      values.insert(values.end(), value.begin(), value.end());
    }
  }
};

const std::vector<float> kOne = {1.0F};

std::vector<float> queries_for(int dim, unsigned seed) {
  return test::awkward_floats(kMaxQueries * (static_cast<std::size_t>(dim) + 1), seed);
}

}  // namespace
}  // namespace outrider::kernels

#endif  // OUTRIDER_TESTS_SUPPORT_ATTEND_CALLS_H_
