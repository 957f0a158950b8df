// SPDX-License-Identifier: Apache-2.0
#include "model/pass/rank_gather.h"

#include <algorithm>

namespace outrider {

void RankGather::resize(int n_rows, int width) {
  const auto n_ranks = static_cast<std::size_t>(ranks_->n_ranks());
  n_bytes_.resize(n_ranks);
  slot_counts_.resize(n_ranks);
  if (n_rows < 2) return;  // it is received in place
  const std::size_t n = static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(width);
  if (received_.size() < n) received_.resize(n);
}

void RankGather::columns(const float* mine, int n_rows, std::span<const int> parts, float* row,
                         bool to_all) {
  if (failure_) return;
  const std::size_t row_bytes = static_cast<std::size_t>(n_rows) * sizeof(float);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    n_bytes_[i] = row_bytes * static_cast<std::size_t>(parts[i]);
  }
  const std::span<const float> own(
      mine, n_bytes_[static_cast<std::size_t>(ranks_->rank())] / sizeof(float));
  auto* const to = reinterpret_cast<std::byte*>(n_rows == 1 ? row : received_.data());
  try {
    if (to_all) {
      ranks_->all_gather(std::as_bytes(own), n_bytes_, to);
    } else {
      ranks_->gather(std::as_bytes(own), n_bytes_, to);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void RankGather::slots(float* first, int width, std::span<const int> n_slots) {
  if (failure_) return;
  const std::size_t slot_bytes = static_cast<std::size_t>(width) * sizeof(float);
  std::size_t own_at = 0;
  for (std::size_t i = 0; i < n_slots.size(); ++i) {
    n_bytes_[i] = slot_bytes * static_cast<std::size_t>(n_slots[i]);
    if (static_cast<int>(i) < ranks_->rank()) own_at += n_bytes_[i];
  }
  auto* const all = reinterpret_cast<std::byte*>(first);
  const auto me = static_cast<std::size_t>(ranks_->rank());
  try {
    ranks_->all_gather({all + own_at, n_bytes_[me]}, n_bytes_, all);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace outrider
