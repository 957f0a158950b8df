// SPDX-License-Identifier: Apache-2.0
#include "model/pass/expert_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "outrider/error.h"

namespace outrider {

ExpertMemory::ExpertMemory(std::span<const Matrices* const> all, std::uint64_t max_bytes,
                           int n_threads)
    : rows_(static_cast<std::size_t>(n_threads)) {
  // The number of matrices of each size in bytes.
  std::map<std::size_t, std::uint64_t> sizes;
  double all_bytes = 0;
  for (const Matrices* const matrices : all) {
    const std::size_t bytes = matrices->front().packed_bytes();
    sizes[bytes] += matrices->size();
    all_bytes += static_cast<double>(bytes) * static_cast<double>(matrices->size());
  }
  std::uint64_t min_bytes = 0;
  for (const auto& [bytes, n] : sizes) {
    min_bytes += bytes * std::min<std::uint64_t>(n, kMaxTogether);
  }
  if (max_bytes < min_bytes) {
    throw UsageError(
        "load model", "--experts-memory",
        fmt::format("at least {} bytes, what two matrices of each size take", min_bytes),
        fmt::format("{}", max_bytes));
  }
  pools_.reserve(sizes.size());
  // Shares out the memory above the minimum.
  const double share = static_cast<double>(max_bytes - min_bytes) / all_bytes;
  for (const auto& [bytes, n] : sizes) {
    const auto least = std::min<std::uint64_t>(n, kMaxTogether);
    const auto more = static_cast<std::uint64_t>(share * static_cast<double>(n));
    Pool& pool = pools_.emplace_back();
    pool.place_bytes = bytes;
    pool.places.resize(static_cast<std::size_t>(std::min(n, least + more)));
    for (Place& place : pool.places) place.memory = allocate_pooled_memory(bytes);
    n_bytes_ += bytes * pool.places.size();
  }
  std::size_t max_ids = 0;
  for (const Matrices* const matrices : all) {
    const std::size_t bytes = matrices->front().packed_bytes();
    const auto pool = std::find_if(pools_.begin(), pools_.end(),
                                   [&](const Pool& its) { return its.place_bytes == bytes; });
    shelves_[matrices] = {
        .matrices = matrices, .pool = &*pool, .places = std::vector<int>(matrices->size(), -1)};
    max_ids = std::max(max_ids, matrices->size());
  }
  kinds_.reserve(kMaxTogether);
  ids_.reserve(max_ids);
  to_pack_.reserve(max_ids * kMaxTogether);
}

bool ExpertMemory::is_here(int id) const {
  return std::all_of(kinds_.begin(), kinds_.end(), [id](const Shelf* shelf) {
    return shelf->places[static_cast<std::size_t>(id)] >= 0;
  });
}

void ExpertMemory::begin(std::span<const Matrices* const> kinds, std::span<const int> ids) {
  kinds_.clear();
  for (const Matrices* const kind : kinds) kinds_.push_back(&shelves_.find(kind)->second);
  // Experts in memory come first; otherwise loading others would evict them.
  ids_.clear();
  for (const bool here : {true, false}) {
    for (const int id : ids) {
      if (is_here(id) == here) ids_.push_back(id);
    }
  }
  n_done_ = n_claimed_ = 0;
}

// A pool has places for at least one expert of this op.
bool ExpertMemory::has_room() const {
  return std::all_of(kinds_.begin(), kinds_.end(), [this](const Shelf* shelf) {
    const auto n = std::count_if(kinds_.begin(), kinds_.end(),
                                 [&](const Shelf* other) { return other->pool == shelf->pool; });
    return shelf->pool->n_claimed + n <= static_cast<std::int64_t>(shelf->pool->places.size());
  });
}

void ExpertMemory::claim() {
  n_done_ = n_claimed_;
  ++n_claims_;
  to_pack_.clear();
  for (Shelf* const shelf : kinds_) shelf->pool->n_claimed = 0;
  while (!is_last() && has_room()) {
    for (Shelf* const shelf : kinds_) claim_one(*shelf, ids_[static_cast<std::size_t>(n_claimed_)]);
    ++n_claimed_;
  }
}

void ExpertMemory::claim_one(Shelf& shelf, int id) {
  std::vector<Place>& places = shelf.pool->places;
  int& its = shelf.places[static_cast<std::size_t>(id)];
  ++shelf.pool->n_claimed;
  if (its < 0) {
    // Scanning all places is cheap compared with packing.
    const auto oldest =
        std::min_element(places.begin(), places.end(),
                         [](const Place& a, const Place& b) { return a.used < b.used; });
    if (oldest->shelf != nullptr) oldest->shelf->places[static_cast<std::size_t>(oldest->id)] = -1;
    its = static_cast<int>(oldest - places.begin());
    oldest->shelf = &shelf;
    oldest->id = id;
    oldest->matrix = (*shelf.matrices)[static_cast<std::size_t>(id)].placed_at(oldest->memory);
    to_pack_.push_back(&oldest->matrix);
  }
  places[static_cast<std::size_t>(its)].used = n_claims_;
}

void ExpertMemory::pack(const Team& team) {
  WeightRows& rows = rows_[static_cast<std::size_t>(team.index())];
  for (const Matrix* const matrix : to_pack_) {
    matrix->pack_tiles(team.share(matrix->n_tiles()), rows);
  }
}

const Matrix& ExpertMemory::matrix(const Matrices& kind, int id) const {
  const Shelf& shelf = shelves_.find(&kind)->second;
  return shelf.pool->places[static_cast<std::size_t>(shelf.places[static_cast<std::size_t>(id)])]
      .matrix;
}

}  // namespace outrider
