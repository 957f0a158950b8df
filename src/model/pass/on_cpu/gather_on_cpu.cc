// SPDX-License-Identifier: Apache-2.0
// The ops that gather the ranks' parts of a pass's rows. One thread exchanges data; all threads
// distribute what was received.
#include <algorithm>
#include <cstddef>

#include "model/pass/on_cpu/cpu_ops.h"
#include "model/pass/pass_builder.h"

namespace outrider {
namespace {

// Copies row i of the ranks' parts, (n_rows, parts[rank]) one after the other, into contiguous
// columns.
void put_together(const float* received, int n_rows, std::span<const int> parts, std::int64_t i,
                  float* to) {
  for (const int part : parts) {
    const auto width = static_cast<std::size_t>(part);
    std::copy_n(received + static_cast<std::size_t>(i) * width, width, to);
    received += static_cast<std::size_t>(n_rows) * width;
    to += width;
  }
}

}  // namespace

void CpuOps::operator()(const op::Gather& op) const {
  const std::span<const int> parts =
      pass.list_.buffers[static_cast<std::size_t>(op.from.buffer)].parts;
  const int n_rows = buffer(op.from).n_rows();
  const bool to_all = op.to.buffer != kLogits;
  const bool receives = to_all || pass.gather_.ranks().leads();
  const Range mine = team.share(n_rows);
  if (op.from.bias != nullptr && !op.from.bias->empty()) {
    for (std::int64_t i = mine.begin; i < mine.end; ++i) add_bias(op.from, i);
    team.barrier();
  }
  if (team.index() == 0 && n_rows > 0) {
    pass.gather_.columns(row(op.from, 0), n_rows, parts, receives ? row(op.to, 0) : nullptr,
                         to_all);
  }
  team.barrier();
  if (!receives || pass.gather_.has_failed()) return;
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    if (n_rows > 1) put_together(pass.gather_.received(), n_rows, parts, i, row(op.to, i));
    if (to_all) buffer(op.to).quantize_row(*pass.machine_.table, static_cast<int>(i));
  }
}

void CpuOps::operator()(const op::GatherExperts& op) const {
  if (team.index() == 0) {
    std::vector<int>& counts = pass.gather_.slot_counts();
    Range ids;
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      ids.end = ids.begin + op.experts->parts[rank];
      const Range slots = pass.routing_.slots_of(ids);
      counts[rank] = static_cast<int>(slots.end - slots.begin);
      ids.begin = ids.end;
    }
    pass.gather_.slots(row(op.rows, 0), op.rows.width, counts);
  }
  team.barrier();
}

}  // namespace outrider
