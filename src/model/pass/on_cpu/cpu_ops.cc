// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_cpu/cpu_ops.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "base/elementary.h"
#include "model/pass/expert_memory.h"
#include "model/pass/on_cpu/rope_angles.h"
#include "model/pass/pass_builder.h"

namespace outrider {
namespace {

// Calls use(row, first, n) for this thread's share of n_rows rows, in whole units or up to a row's
// end. So all threads share even a single row.
template <typename Use>
void for_parts(const Team& team, int n_rows, int width, int unit, const Use& use) {
  const std::int64_t n_groups = (width + unit - 1) / unit;
  const Range mine = team.share(n_rows * n_groups);
  for (std::int64_t at = mine.begin; at < mine.end;) {
    const std::int64_t row = at / n_groups;
    const std::int64_t row_begin = row * n_groups;
    const std::int64_t end = std::min(row_begin + n_groups, mine.end);
    const auto first = static_cast<int>(at - row_begin) * unit;
    const auto past = static_cast<int>(end - row_begin) * unit;
    use(static_cast<int>(row), first, std::min(past, width) - first);
    at = end;
  }
}

// y += the n elements of the bias from `first` on; a bias may be null or empty.
void add_bias_part(const KernelTable& table, float* y, const std::vector<float>* bias, int first,
                   int n) {
  if (bias != nullptr && !bias->empty()) table.add(y, bias->data() + first, n);
}

void scale_by(float scale, float* values, int n) {
  for (int i = 0; i < n; ++i) values[i] *= scale;
}

template <typename T>
T* row_of(std::vector<T>& values, std::int64_t row, int width) {
  return values.data() + static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
}

// y = norm(x), n elements. y may be x.
void normalise(const KernelTable& table, const Norm& norm, const float* x, int n, float* y) {
  if (norm.removes_mean) {
    const float* const bias = norm.bias.empty() ? nullptr : norm.bias.data();
    table.layer_norm(x, norm.weight.data(), bias, n, norm.epsilon, y);
  } else {
    const int width = n / norm.n_groups;
    for (int at = 0; at < n; at += width) {
      table.rms_norm(x + at, norm.weight.data() + at, width, norm.epsilon, y + at);
    }
  }
}

// One expert's row of values (n, width); null if there are none.
const float* of_expert(const std::vector<float>& values, int expert, int width) {
  if (values.empty()) return nullptr;
  return values.data() + static_cast<std::size_t>(expert) * static_cast<std::size_t>(width);
}

void activate(const KernelTable& table, const op::Gate& op, const float* gate, const float* up,
              int n, float* out) {
  switch (op.activation) {
    case Activation::silu:
      return table.silu_multiply(gate, up, n, out);
    case Activation::gelu_tanh:
      return table.gelu_multiply(gate, up, n, out);
    case Activation::gelu_erf:
      return table.gelu_erf_multiply(gate, up, n, out);
    case Activation::sigmoid:
      return table.sigmoid_multiply(gate, up, n, out);
    case Activation::clamped_swish:
      return table.clamped_swish_multiply(gate, up, n, op.limit, out);
    case Activation::relu:  // NaN is kept
      for (int i = 0; i < n; ++i) out[i] = (gate[i] < 0 ? 0.0F : gate[i]) * up[i];
      return;
    case Activation::relu_squared:  // NaN is kept
      for (int i = 0; i < n; ++i) {
        const float positive = gate[i] < 0 ? 0.0F : gate[i];
        out[i] = positive * positive * up[i];
      }
      return;
  }
}

// bf16 weights use bf16 arithmetic for keys and values too, if the table has it.
kernels::Attend attend_of(const KernelTable& table, const Attention& attention,
                          kernels::KvKind kv) {
  const bool pairs =
      table.attend_bf16_pairs != nullptr && attention.query.matrix.kind() == WeightKind::bf16 &&
      kv == kernels::KvKind::bf16 && attention.head_dim <= kernels::kMaxRoundedHeadDim;
  return pairs ? table.attend_bf16_pairs : table.attend[static_cast<int>(kv)];
}

}  // namespace

Activations& CpuOps::buffer(const Rows& rows) const {
  return pass.buffers_[static_cast<std::size_t>(rows.buffer)];
}

float* CpuOps::row(const Rows& rows, std::int64_t i) const {
  if (rows.buffer == kLogits) {
    return pass.outputs_.logits +
           static_cast<std::size_t>(i) * static_cast<std::size_t>(rows.width);
  }
  return buffer(rows).row(static_cast<int>(i)) + rows.first;
}

void CpuOps::add_bias(const Rows& rows, std::int64_t i) const {
  add_bias_part(*pass.machine_.table, row(rows, i), rows.bias, 0, rows.width);
}

void CpuOps::operator()(const op::Embed& op) const {
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    const std::span<float> x(row(op.to, i), static_cast<std::size_t>(op.to.width));
    const PassRow& its = pass.plan_.rows()[static_cast<std::size_t>(i)];
    decode_rows(*op.table, op.by == op::Embed::By::token ? its.token : its.position, 1, x);
    if (op.scale != 1) scale_by(op.scale, x.data(), op.to.width);
  }
}

void CpuOps::operator()(const op::Angles& op) const {
  CpuPass::Angles& angles = pass.angles_[static_cast<std::size_t>(op.rope)];
  const RopeTable& rope = pass.list_.ropes[static_cast<std::size_t>(op.rope)];
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    const PassRow& at = pass.plan_.rows()[static_cast<std::size_t>(i)];
    rope_angles(rope, at, row_of(angles.cosines, i, angles.half),
                row_of(angles.sines, i, angles.half));
    if (rope.query_beta != 0) {
      angles.query_scales[static_cast<std::size_t>(i)] = rope.query_scale(at.position);
    }
  }
}

void CpuOps::operator()(const op::Normalise& op) const {
  const KernelTable& table = *pass.machine_.table;
  const PassPlan& plan = pass.plan_;
  using Takes = op::Normalise::Takes;
  const Range mine = team.share(buffer(op.to).n_rows());
  if (op.takes == Takes::routed) pass.routing_.place(team, *op.experts, mine);
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* to = row(op.to, i);
    const std::int64_t from = op.takes == Takes::asked ? plan.asked()[static_cast<std::size_t>(i)]
                              : op.takes == Takes::routed ? pass.routing_.row_of(i)
                                                          : i;
    for (int p = 0; p < op.n_parts; ++p) {
      const auto& [rows, norm] = op.parts[static_cast<std::size_t>(p)];
      add_bias(rows, from);
      const float* x = row(rows, from);
      if (norm != nullptr && !norm->empty()) {
        normalise(table, *norm, x, rows.width, to);
      } else if (x != to) {
        std::copy_n(x, rows.width, to);
      }
      if (op.scale != 1) scale_by(op.scale, to, rows.width);
      to += rows.width;
    }
    buffer(op.to).quantize_row(table, static_cast<int>(i));
  }
}

void CpuOps::operator()(const op::Multiply& op) const {
  for (int i = 0; i < op.n_products; ++i) {
    const auto& [matrix, to] = op.products[static_cast<std::size_t>(i)];
    matrix->multiply(team, buffer(op.from), row(to, 0), static_cast<std::size_t>(to.width));
  }
}

// Head by head over all rows: the tokens of a block of keys share its cache lines.
void CpuOps::operator()(const op::PlaceHeads& op) const {
  const KernelTable& table = *pass.machine_.table;
  const Attention& attention = *op.attention;
  const int head_dim = attention.head_dim;
  const KvShape& shape = pass.cache_->shape(op.cache_layer);
  const CpuPass::Angles* const angles =
      attention.rope == kNoRope ? nullptr : &pass.angles_[static_cast<std::size_t>(attention.rope)];
  const int n_rows = pass.plan_.n_rows();
  // Calls use(row, x) for one head of every row, x (head_dim), after its bias and norm.
  const auto for_rows = [&](const Rows& heads, const std::vector<float>& bias, const Norm* norm,
                            int head, const auto& use) {
    for (int i = 0; i < n_rows; ++i) {
      float* x = row(heads, i) + head * head_dim;
      // A norm over all heads together has added the bias already.
      if (norm != nullptr && attention.norms_all_heads) {
        use(i, x);
        continue;
      }
      add_bias_part(table, x, &bias, head * head_dim, head_dim);
      if (norm != nullptr && !norm->empty()) {
        normalise(table, *norm, x, head_dim, x);
      }
      use(i, x);
    }
  };
  const auto apply_rope = [&](int i, float* x) {
    if (angles == nullptr) return;
    const auto at = static_cast<std::size_t>(i) * static_cast<std::size_t>(angles->half);
    table.apply_rope(x, angles->cosines.data() + at, angles->sines.data() + at, angles->half);
  };
  const auto rope_query = [&](int i, float* x) {
    apply_rope(i, x);
    if (angles == nullptr || angles->query_scales.empty()) return;
    scale_by(angles->query_scales[static_cast<std::size_t>(i)], x, head_dim);
  };
  const auto store = [&](int i, const float* x, const auto& stores, std::size_t block_at) {
    const PassRow& at = pass.plan_.rows()[static_cast<std::size_t>(i)];
    const int slot = at.sequence->n_kept() + at.node;
    stores[static_cast<int>(shape.kind)](
        x, head_dim, at.sequence->layer(slot, op.cache_layer) + block_at, slot % kPageTokens);
  };

  const auto store_values = [&](int head) {
    for_rows(op.value, attention.value.bias, nullptr, head, [&](int i, float* value) {
      if (!attention.value_norm.empty()) {
        normalise(table, attention.value_norm, value, head_dim, value);
      }
      store(i, value, table.store_value, shape.values_at(head));
    });
  };

  // Units per key-value head: its queries, its keys, its values. Storing takes a cache line per
  // element and costs more than rotating, so all threads share it. Values computed from the keys'
  // product are stored by the keys' thread, before the keys rotate.
  const int group = op.query.buffer < 0 ? 0 : attention.queries_per_key();
  const int n_units = group + (op.key.buffer < 0 ? 0 : 2);
  const Range mine = team.share(std::int64_t{attention.n_kv_heads} * n_units);
  for (std::int64_t at = mine.begin; at < mine.end; ++at) {
    const int head = static_cast<int>(at) / n_units;
    const int unit = static_cast<int>(at) % n_units;
    if (unit < group) {
      const int query = head * group + unit - attention.first_in_group;
      if (query < 0 || query >= attention.n_heads) continue;  // on another rank
      for_rows(op.query, attention.query.bias, &attention.query_norm, query, rope_query);
    } else if (unit == group) {
      if (attention.values_are_keys()) {
        for (int i = 0; i < n_rows; ++i) {
          std::copy_n(row(op.key, i) + head * head_dim, head_dim,
                      row(op.value, i) + head * head_dim);
        }
        store_values(head);
      }
      for_rows(op.key, attention.key.bias, &attention.key_norm, head, [&](int i, float* key) {
        apply_rope(i, key);
        store(i, key, table.store_key, shape.keys_at(head));
      });
    } else if (!attention.values_are_keys()) {
      store_values(head);
    }
  }
}

void CpuOps::operator()(const op::Attend& op) const {
  const Attention& attention = *op.attention;
  AttentionWork& work = *pass.attention_of_[static_cast<std::size_t>(op.cache_layer)];
  work.attend(team,
              {.attend = attend_of(*pass.machine_.table, attention, pass.machine_.kv),
               .layer = op.cache_layer,
               .scale = attention.scale,
               .softcap = attention.softcap,
               .window = attention.window,
               .sinks = attention.sinks.empty() ? nullptr : attention.sinks.data(),
               .reads_whole_block = attention.reads_whole_block,
               .reads_encoder = attention.side == CacheSide::cross,
               .position_bias = attention.position_bias.get()},
              row(op.query, 0), buffer(op.to));
}

void CpuOps::operator()(const op::Prepare& op) const {
  const int unit = buffer(op.rows).unit();
  for_parts(team, pass.plan_.n_rows(), op.rows.width, unit, [&](int i, int first, int n) {
    buffer(op.rows).quantize_part(*pass.machine_.table, i, first, n);
  });
}

void CpuOps::operator()(const op::Gate& op) const {
  const KernelTable& table = *pass.machine_.table;
  const int unit = buffer(op.to).unit();
  // Other ranks' slots have no values here.
  Range own{0, buffer(op.to).n_rows()};
  if (op.experts != nullptr) own = pass.routing_.slots_of(op.experts->own_ids());
  const auto n_rows = static_cast<int>(own.end - own.begin);
  for_parts(team, n_rows, op.gate.width, unit, [&](int at, int first, int n) {
    const int i = static_cast<int>(own.begin) + at;
    float* gate = row(op.gate, i) + first;
    add_bias_part(table, gate, op.gate.bias, first, n);
    const float* up = pass.ones_.data();
    if (op.up.buffer >= 0) {
      float* factor = row(op.up, i) + first;
      add_bias_part(table, factor, op.up.bias, first, n);
      up = factor;
      if (op.experts != nullptr && !op.experts->gate_bias.empty()) {
        const int expert = pass.routing_.expert_of(i);
        table.add(gate, of_expert(op.experts->gate_bias, expert, op.gate.width) + first, n);
        table.add(factor, of_expert(op.experts->up_bias, expert, op.up.width) + first, n);
      }
    }
    activate(table, op, gate, up, n, row(op.to, i) + first);
    buffer(op.to).quantize_part(table, i, first, n);
  });
}

void CpuOps::operator()(const op::Add& op) const {
  const KernelTable& table = *pass.machine_.table;
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* to = row(op.to, i);
    if (op.from.buffer < 0) {
      add_bias_part(table, to, op.from.bias, 0, op.to.width);
      continue;
    }
    add_bias(op.from, i);
    float scale = op.scale;
    if (op.gate.buffer >= 0) {
      scale *= static_cast<float>(1 / (1 + portable_exp(-double{*row(op.gate, i)})));
    }
    if (scale != 1) scale_by(scale, row(op.from, i), op.to.width);
    table.add(to, row(op.from, i), op.to.width);
  }
}

void CpuOps::operator()(const op::LeaveFeature& op) const {
  const std::span<const int> asked = pass.outputs_.feature_layers;
  for (std::size_t place = 0; place < asked.size(); ++place) {
    if (asked[place] != op.n_layers_done) continue;
    const auto width = static_cast<std::size_t>(op.from.width);
    const Range mine = team.share(pass.plan_.n_rows());
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      float* to =
          pass.outputs_.features + (static_cast<std::size_t>(i) * asked.size() + place) * width;
      if (op.norm != nullptr) {
        normalise(*pass.machine_.table, *op.norm, row(op.from, i), op.from.width, to);
      } else {
        std::copy_n(row(op.from, i), width, to);
      }
    }
  }
}

void CpuOps::operator()(const op::Spread& op) const {
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    float* to = row(op.to, i);
    std::fill_n(to, op.to.width, -std::numeric_limits<float>::infinity());
    for (std::size_t place = 0; place < op.ids->size(); ++place) {
      to[(*op.ids)[place]] = row(op.from, i)[place];
    }
  }
}

void CpuOps::operator()(const op::SoftCap& op) const {
  for_parts(team, pass.plan_.n_asked(), op.rows.width, kernels::kGroup,
            [&](int i, int first, int n) {
              pass.machine_.table->soft_cap(row(op.rows, i) + first, n, op.cap);
            });
}

void CpuOps::operator()(const op::Route& op) const {
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t i = mine.begin; i < mine.end; ++i) {
    add_bias(op.scores, i);
    pass.routing_.choose(*op.experts, static_cast<int>(i), row(op.scores, i));
  }
}

void CpuOps::operator()(const op::MultiplyExperts& op) const {
  const std::span<const int> touched = pass.routing_.touched_of(*op.experts);
  if (op.memory == nullptr) {
    multiply_experts(op, touched);
    return;
  }
  std::array<const ExpertMemory::Matrices*, ExpertMemory::kMaxTogether> kinds{};
  const auto n_products = static_cast<std::size_t>(op.n_products);
  for (std::size_t i = 0; i < n_products; ++i) kinds[i] = op.products[i].matrices;
  const bool decides = team.index() == 0;
  if (decides) op.memory->begin({kinds.data(), n_products}, touched);
  while (true) {
    if (decides) op.memory->claim();
    team.barrier();
    op.memory->pack(team);
    team.barrier();
    multiply_experts(op, op.memory->claimed());
    const bool was_last = op.memory->is_last();
    team.barrier();
    if (was_last) return;
  }
}

// Free threads take the next tiles of any expert.
void CpuOps::multiply_experts(const op::MultiplyExperts& op, std::span<const int> ids) const {
  const auto n_products = static_cast<std::size_t>(op.n_products);
  multiply_each(team, ids.size() * n_products, [&](std::size_t i) {
    const int expert = ids[i / n_products];
    const auto& [matrices, to] = op.products[i % n_products];
    const Range slots = pass.routing_.slots_of(expert);
    const Matrix& matrix = op.memory == nullptr ? (*matrices)[static_cast<std::size_t>(expert)]
                                                : op.memory->matrix(*matrices, expert);
    return PartialProduct{.matrix = &matrix,
                          .x = &buffer(op.from),
                          .rows = slots,
                          .y = row(to, slots.begin),
                          .y_stride = static_cast<std::size_t>(to.width)};
  });
}

void CpuOps::operator()(const op::SumExperts& op) const {
  const KernelTable& table = *pass.machine_.table;
  const Routing& routing = pass.routing_;
  const Experts& experts = *op.experts;
  const Range mine = team.share(pass.plan_.n_rows());
  for (std::int64_t at = mine.begin; at < mine.end; ++at) {
    const auto i = static_cast<int>(at);
    float* to = row(op.to, i);
    for (int place = 0; place < experts.n_used; ++place) {
      float* from = row(op.from, routing.slot_of(experts, i, place));
      const float* const bias =
          of_expert(experts.down_bias, routing.id_of(experts, i, place), op.from.width);
      if (bias != nullptr) table.add(from, bias, op.from.width);
      scale_by(routing.weight_of(experts, i, place), from, op.from.width);
      if (place == 0) {
        std::copy_n(from, op.from.width, to);
      } else {
        table.add(to, from, op.from.width);
      }
    }
  }
}

}  // namespace outrider
