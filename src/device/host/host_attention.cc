// SPDX-License-Identifier: Apache-2.0
#include "device/host/host_attention.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "device/attend_steps.h"
#include "kernels/tables.h"

namespace outrider::device {
namespace {

using kernels::AttendState;
using kernels::kScalarTable;
using Ranges = std::span<std::byte* const>;

template <class Element>
Element* as(std::byte* range) {
  return reinterpret_cast<Element*>(range);
}

// A row's call for one split and the query heads of each key-value head.
class RowCall {
 public:
  RowCall(const AttendNumbers& numbers, Ranges ranges, kernels::KvKind kv, std::size_t row)
      : numbers_(numbers), ranges_(ranges), kv_(kv), row_(row) {
    std::memcpy(&words_, ranges[2] + row * sizeof words_, sizeof words_);
    const auto* const pages = as<std::uint32_t>(ranges[4]) + row * numbers.max_pages;
    for (std::uint32_t i = 0; i < numbers.max_pages; ++i) {
      chunks_.push_back(as<std::uint32_t>(ranges[5]) + pages[i]);
    }
    block_bytes_ = std::size_t{numbers.block_words} * sizeof(std::uint32_t);
    scratch_.resize(2 * block_bytes_ + kLine);
  }

  bool reads(std::uint32_t split) const {
    constexpr std::uint32_t kSplit = kernels::kSplitKeys;
    return split * kSplit < words_.n_keys && (split + 1) * kSplit > words_.first_key;
  }

  void run(std::uint32_t split) {
    const std::size_t n_queries = numbers_.n_heads / numbers_.n_kv_heads;
    for (std::size_t kv_head = 0; kv_head < numbers_.n_kv_heads; ++kv_head) {
      const std::size_t head = numbers_.first_head + kv_head * n_queries;
      const std::size_t at = (row_ * numbers_.max_splits + split) * numbers_.heads_of_row + head;
      kernels::AttendRow row{};
      row.queries =
          as<float>(ranges_[1]) + (row_ * numbers_.heads_of_row + head) * numbers_.head_dim;
      row.out = as<float>(ranges_[6]) + at * numbers_.head_dim;
      row.states = as<AttendState>(ranges_[7]) + at;
      row.n_keys = static_cast<int>(words_.n_keys);
      row.first_key = static_cast<int>(words_.first_key);
      row.n_contiguous = static_cast<int>(words_.n_contiguous);
      row.slots = as<int>(ranges_[3]) + words_.slots_at;
      kernels::AttendArgs args{};
      args.rows = &row;
      args.n_rows = 1;
      args.n_queries = static_cast<int>(n_queries);
      args.query_stride = numbers_.head_dim;
      args.out_stride = numbers_.head_dim;
      args.head_dim = static_cast<int>(numbers_.head_dim);
      args.split = static_cast<int>(split);
      args.scale = numbers_.scale;
      args.softcap = numbers_.softcap;
      args.chunks = chunks_.data();
      args.keys_at = kv_head * block_bytes_;
      args.values_at = (numbers_.n_kv_heads + kv_head) * block_bytes_;
      args.scratch = scratch_on_line();
      kScalarTable.attend[static_cast<int>(kv_)](args);
    }
  }

 private:
  static constexpr std::size_t kLine = 64;

  void* scratch_on_line() {
    const auto at = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (kLine - at % kLine) % kLine;
  }

  const AttendNumbers& numbers_;
  Ranges ranges_;
  kernels::KvKind kv_;
  std::size_t row_;
  AttendRowWords words_;
  std::vector<const void*> chunks_;
  std::size_t block_bytes_;
  std::vector<std::byte> scratch_;
};

}  // namespace

void attend_on_host(const Step& step, std::span<std::byte* const> ranges, kernels::KvKind kv) {
  const auto numbers = step.numbers_as<AttendNumbers>();
  const int n_rows = rows_of(ranges[0], numbers.max_rows);
  for (int row = 0; row < n_rows; ++row) {
    RowCall call(numbers, ranges, kv, static_cast<std::size_t>(row));
    for (std::uint32_t split = 0; split < numbers.max_splits; ++split) {
      if (call.reads(split)) call.run(split);
    }
  }
}

void merge_splits_on_host(const Step& step, std::span<std::byte* const> ranges) {
  const auto numbers = step.numbers_as<MergeNumbers>();
  const auto n_rows = static_cast<std::size_t>(rows_of(ranges[0], numbers.max_rows));
  const std::size_t dim = numbers.head_dim;
  const int head_dim = static_cast<int>(numbers.head_dim);
  for (std::size_t row = 0; row < n_rows; ++row) {
    AttendRowWords words;
    std::memcpy(&words, ranges[1] + row * sizeof words, sizeof words);
    const auto n_splits =
        static_cast<std::size_t>(kernels::splits_of(static_cast<int>(words.n_keys)));
    const std::size_t first = words.first_key / kernels::kSplitKeys;
    for (std::size_t head = 0; head < numbers.n_heads; ++head) {
      const auto at = [&](std::size_t split) {
        return (row * numbers.max_splits + split) * numbers.n_heads + head;
      };
      float* const out = as<float>(ranges[4]) + (row * numbers.n_heads + head) * dim;
      std::memcpy(out, as<float>(ranges[2]) + at(first) * dim, dim * sizeof(float));
      AttendState state = as<AttendState>(ranges[3])[at(first)];
      for (std::size_t split = first + 1; split < n_splits; ++split) {
        kScalarTable.merge_split(as<float>(ranges[2]) + at(split) * dim,
                                 as<AttendState>(ranges[3])[at(split)], head_dim, out, &state);
      }
      kScalarTable.finish_attention(state, head_dim, out);
    }
  }
}

}  // namespace outrider::device
