// SPDX-License-Identifier: Apache-2.0
// Latent attention on the CPU (LatentAttention, blocks.h): the steps around the attention itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/pass/on_cpu/cpu_ops.h"

namespace outrider {

// Head by head over all rows, with the key as an additional head.
void CpuOps::operator()(const op::PlaceLatents& op) const {
  const KernelTable& table = *pass.machine_.table;
  const LatentAttention& latent = *op.latent;
  const int n_heads = latent.attention.n_heads;
  const int n_rows = pass.plan_.n_rows();
  const int width = latent.plain_dim + latent.rope_dim;
  const CpuPass::Angles& angles = pass.angles_[static_cast<std::size_t>(latent.attention.rope)];
  const KvShape& shape = pass.cache_->shape(op.cache_layer);
  // to (rope_dim) = from, rotated. In `from` a pair's elements are adjacent; in `to` they are in
  // separate halves, for queries and keys alike, so scores are unchanged.
  const auto apply_rope = [&](int i, const float* from, float* to) {
    const int half = angles.half;
    for (int pair = 0; pair < half; ++pair) {
      to[pair] = from[2 * pair];
      to[pair + half] = from[2 * pair + 1];
    }
    const auto at = static_cast<std::size_t>(i) * static_cast<std::size_t>(half);
    table.apply_rope(to, angles.cosines.data() + at, angles.sines.data() + at, half);
  };
  const auto place_query = [&](int i, int head) {
    const float* const query = row(op.query, i) + head * width;
    const std::int64_t slot = std::int64_t{head} * n_rows + i;
    std::copy_n(query, latent.plain_dim, row(op.plain, slot));
    buffer(op.plain).quantize_row(table, static_cast<int>(slot));
    apply_rope(i, query + latent.plain_dim,
               row(op.absorbed, i) + head * latent.attention.head_dim + latent.latent_dim);
  };
  const auto place_key = [&](int i) {
    const float* const key = row(op.key, i);
    float* const kept = row(op.kept, i);
    const Norm& norm = latent.latent_norm;
    table.rms_norm(key, norm.weight.data(), latent.latent_dim, norm.epsilon, kept);
    apply_rope(i, key + latent.latent_dim, kept + latent.latent_dim);
    const PassRow& at = pass.plan_.rows()[static_cast<std::size_t>(i)];
    const int slot = at.sequence->n_kept() + at.node;
    table.store_key[static_cast<int>(shape.kind)](
        kept, op.kept.width, at.sequence->layer(slot, op.cache_layer) + shape.keys_at(0),
        slot % kPageTokens);
  };
  const Range mine = team.share(n_heads + 1);
  for (std::int64_t unit = mine.begin; unit < mine.end; ++unit) {
    for (int i = 0; i < n_rows; ++i) {
      unit < n_heads ? place_query(i, static_cast<int>(unit)) : place_key(i);
    }
  }
}

void CpuOps::operator()(const op::SplitHeads& op) const {
  const int n_rows = pass.plan_.n_rows();
  const Range mine = team.share(buffer(op.to).n_rows());
  for (std::int64_t slot = mine.begin; slot < mine.end; ++slot) {
    const std::int64_t head = slot / n_rows;
    std::copy_n(row(op.from, slot % n_rows) + head * op.to.width, op.to.width, row(op.to, slot));
    buffer(op.to).quantize_row(*pass.machine_.table, static_cast<int>(slot));
  }
}

// Free threads take the next tiles of any head.
void CpuOps::operator()(const op::MultiplyHeads& op) const {
  const std::int64_t n_rows = pass.plan_.n_rows();
  multiply_each(team, op.matrices->size(), [&](std::size_t head) {
    const auto first = static_cast<std::int64_t>(head) * n_rows;
    return PartialProduct{.matrix = &(*op.matrices)[head],
                          .x = &buffer(op.from),
                          .rows = {first, first + n_rows},
                          .y = row(op.to, 0) + head * static_cast<std::size_t>(op.stride),
                          .y_stride = static_cast<std::size_t>(op.to.width)};
  });
}

}  // namespace outrider
