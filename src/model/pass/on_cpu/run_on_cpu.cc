// SPDX-License-Identifier: Apache-2.0
#include "model/pass/on_cpu/run_on_cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "model/pass/on_cpu/cpu_ops.h"
#include "model/pass/pass_builder.h"
#include "model/prefill.h"
#include "model/thread_share.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// The shape of an op with a state per node; otherwise null.
const DeltaShape* shape_of_states(const Op& op) {
  const auto* const recur = std::get_if<op::Recur>(&op.what);
  if (recur == nullptr) return nullptr;
  if (const auto* delta = std::get_if<op::Recur::Delta>(&recur->layer)) return &delta->net->shape;
  const auto* const mamba = std::get_if<op::Recur::Mamba>(&recur->layer);
  return mamba == nullptr ? nullptr : &mamba->mamba->shape;
}

std::shared_ptr<KvCache> make_cache(const PassList& list, const CpuPass::Machine& machine) {
  if (list.caches.empty()) return nullptr;
  return std::make_shared<KvCache>(list.caches, machine.kv, machine.max_cache_bytes,
                                   MakePageStore(), machine.cache_limit);
}

}  // namespace

CpuPass::CpuPass(PassList list, const ModelConfig& config, const Machine& machine)
    : CpuPass(std::move(list), &config, machine, nullptr) {}

CpuPass::CpuPass(PassList list, const Machine& machine)
    : CpuPass(std::move(list), nullptr, machine, nullptr) {}

CpuPass::CpuPass(PassList list, const CpuPass& other)
    : CpuPass(std::move(list), other.config_, other.machine_, &other) {}

CpuPass::CpuPass(PassList list, const ModelConfig* config, const Machine& machine,
                 const CpuPass* with_cache)
    : PassExecutor(std::move(list), config, machine.kv),
      machine_(machine),
      schedules_(list_),
      min_share_ns_(kMinShare_ns),
      buffers_(list_.buffers.size()),
      gather_(machine.ranks) {
  cache_ = with_cache != nullptr ? with_cache->cache_ : make_cache(list_, machine);
  make_attention();
  for (const RopeTable& rope : list_.ropes) {
    angles_.push_back({.half = static_cast<int>(rope.frequencies.size()),
                       .cosines = {},
                       .sines = {},
                       .query_scales = {}});
  }
  int widest = 0;
  for (const Op& op : list_.ops) {
    const auto* gate = std::get_if<op::Gate>(&op.what);
    if (gate != nullptr && gate->up.buffer < 0) widest = std::max(widest, gate->gate.width);
    const DeltaShape* const shape = shape_of_states(op);
    if (shape == nullptr) continue;
    widest = std::max({widest, shape->keys_width(), shape->values_width()});
    slot_floats_ = static_cast<std::size_t>(shape->key_dim) * kDeltaColumns;
  }
  if (cache_ != nullptr && with_cache == nullptr) {
    cache_->set_replay({.table = machine_.table, .n_threads = machine_.n_threads});
  }
  ones_.assign(static_cast<std::size_t>(widest), 1.0F);
  measure_work();
}

void CpuPass::make_attention() {
  attention_of_.resize(list_.caches.size());
  for (const Op& op : list_.ops) {
    const auto* const attend = std::get_if<op::Attend>(&op.what);
    if (attend == nullptr) continue;
    const Attention& attention = *attend->attention;
    const KvShape& shape = cache_->shape(attend->cache_layer);
    if (machine_.kv == kernels::KvKind::int8 && shape.head_dim > kernels::kMaxRoundedHeadDim) {
      throw UsageError("load model", "kv int8",
                       fmt::format("heads of at most {} elements", kernels::kMaxRoundedHeadDim),
                       fmt::format("{}", shape.head_dim));
    }
    const AttentionWork::Heads heads = {.n = attention.n_heads,
                                        .group = attention.queries_per_key(),
                                        .first_in_group = attention.first_in_group};
    const auto known = std::find_if(attention_.begin(), attention_.end(),
                                    [&](const auto& work) { return work->is_for(heads, shape); });
    AttentionWork*& its = attention_of_[static_cast<std::size_t>(attend->cache_layer)];
    if (known != attention_.end()) {
      its = known->get();
      continue;
    }
    attention_.push_back(
        std::make_unique<AttentionWork>(heads, *machine_.table, shape, machine_.n_threads));
    its = attention_.back().get();
  }
}

void CpuPass::measure_work() {
  const auto add = [this](const Matrix& matrix, int times) {
    weight_bytes_ += static_cast<std::int64_t>(matrix.packed_bytes()) * times;
    products_per_row_ += std::int64_t{matrix.n_columns()} * matrix.k() * times;
  };
  for (const Op& op : list_.ops) {
    if (const auto* route = std::get_if<op::Route>(&op.what)) {
      max_experts_ = std::max(max_experts_, route->experts->n());
      max_used_ = std::max(max_used_, route->experts->n_used);
    }
    if (list_.n_layers > 0 && op.layer < 0) continue;
    if (const auto* what = std::get_if<op::Multiply>(&op.what)) {
      for (int i = 0; i < what->n_products; ++i) {
        add(*what->products[static_cast<std::size_t>(i)].matrix, 1);
      }
    } else if (const auto* of_experts = std::get_if<op::MultiplyExperts>(&op.what)) {
      const Buffer& from = list_.buffers[static_cast<std::size_t>(of_experts->from.buffer)];
      for (int i = 0; i < of_experts->n_products; ++i) {
        const auto& product = of_experts->products[static_cast<std::size_t>(i)];
        add(of_experts->experts->own(*product.matrices), from.n_slots);
      }
    } else if (const auto* of_heads = std::get_if<op::MultiplyHeads>(&op.what)) {
      add(of_heads->matrices->front(), static_cast<int>(of_heads->matrices->size()));
    }
  }
  weight_bytes_ /= std::max(list_.n_layers, 1);
  products_per_row_ /= std::max(list_.n_layers, 1);
}

void CpuPass::prepare(std::span<const TokenBlock> blocks, const RowSet& logits,
                      std::span<const int> skip_layers) {
  require_skippable(skip_layers);
  plan_.prepare(blocks, logits, skip_layers, *config_, *cache_);
  steps_ = &schedules_.of(skip_layers, plan_.n_asked() == 0);
  resize_scratch();
  for (const auto& work : attention_) work->resize_scratch(plan_);
}

bool CpuPass::has_keys_for_readers(const Sequence& sequence) const {
  const auto* const of_text = dynamic_cast<const KvSequence*>(&sequence);
  if (of_text == nullptr || of_text->cache() != cache_.get()) return false;
  for (const Op& op : list_.ops) {
    const auto* const attend = std::get_if<op::Attend>(&op.what);
    if (attend == nullptr || attend->attention->window == 0) continue;
    // The window includes the row's own place, which is after the kept tokens.
    if (!of_text->holds_last(attend->attention->window - 1, attend->cache_layer)) return false;
  }
  return true;
}

void CpuPass::prepare_readers(std::span<const KeyReaders> readers) {
  plan_.prepare_readers(readers, *config_, *cache_);
  for (std::size_t i = 0; i < readers.size(); ++i) {
    if (has_keys_for_readers(*readers[i].sequence)) continue;
    throw Error("forward", fmt::format("block {}", i), "a sequence with the keys of its windows",
                "one that was rewound to where they are gone in part");
  }
  steps_ = &schedules_.of({}, plan_.n_rows() == 0);
  resize_scratch();
  for (const auto& work : attention_) work->resize_scratch(plan_);
}

void CpuPass::prepare_rows(int n_rows) {
  plan_.prepare_rows(n_rows);
  steps_ = &schedules_.of({}, n_rows == 0);
  resize_scratch();
}

void CpuPass::resize_scratch() {
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Buffer& buffer = list_.buffers[i];
    if (buffer.n_slots > 0) {
      buffers_[i].resize(plan_.n_rows() * buffer.n_slots, buffer.width, buffer.forms,
                         Activations::Reads::any_rows);
    } else {
      buffers_[i].resize(buffer.asked ? plan_.n_asked() : plan_.n_rows(), buffer.width,
                         buffer.forms);
    }
  }
  routing_.resize(plan_.n_rows(), max_experts_, max_used_);
  for (const Op& op : list_.ops) {
    if (const auto* what = std::get_if<op::Gather>(&op.what)) {
      // Only rank 0 receives logits.
      const bool receives = what->to.buffer != kLogits || gather_.ranks().leads();
      const int n_rows = what->asked ? plan_.n_asked() : plan_.n_rows();
      gather_.resize(receives ? n_rows : 0, what->to.width);
    }
  }
  if (slot_floats_ > 0) {
    walks_.prepare(plan_.rows());
    const std::size_t n_floats = static_cast<std::size_t>(machine_.n_threads) *
                                 static_cast<std::size_t>(walks_.n_slots()) * slot_floats_;
    if (delta_slots_.size() < n_floats) delta_slots_.resize(n_floats);
  }
  for (std::size_t i = 0; i < angles_.size(); ++i) {
    Angles& angles = angles_[i];
    const auto n_rows = static_cast<std::size_t>(plan_.n_rows());
    const std::size_t n = n_rows * static_cast<std::size_t>(angles.half);
    if (angles.cosines.size() < n) angles.cosines.resize(n);
    if (angles.sines.size() < n) angles.sines.resize(n);
    if (list_.ropes[i].query_beta != 0 && angles.query_scales.size() < n_rows) {
      angles.query_scales.resize(n_rows);
    }
  }
}

float* CpuPass::row(const Rows& rows, std::int64_t i) {
  return buffers_[static_cast<std::size_t>(rows.buffer)].row(static_cast<int>(i));
}

int CpuPass::n_threads() const {
  return threads_for(weight_bytes_, products_per_row_ * plan_.n_rows(), min_share_ns_,
                     machine_.n_threads);
}

void CpuPass::run(const Outputs& outputs) {
  outputs_ = outputs;
  routing_.start_pass();
  plan_.append_nodes();
  const int n_threads = this->n_threads();
  for (const auto& work : attention_) work->begin(plan_, n_threads);
  if (plan_.n_rows() == 0) return;
  run_team(n_threads, [this](const Team& team) {
    const CpuOps run_op{*this, team};
    for (const Step& step : *steps_) {
      if (step.barrier) {
        step.prefetch != nullptr ? step.prefetch->set_prefetch(team)
                                 : team.set_prefetch(nullptr, 0);
        team.barrier();
      }
      if (before_op_) before_op_(team.index(), step);
      std::visit(run_op, step.op->what);
    }
  });
  gather_.throw_if_failed();
}

}  // namespace outrider
