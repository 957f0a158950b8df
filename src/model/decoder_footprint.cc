// SPDX-License-Identifier: Apache-2.0
// The memory of a loaded decoder, as information for users: that of the rank's part, except the
// number of parameters, which is the model's.
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <string_view>

#include "model/decoder_model.h"

namespace outrider {
namespace {

// The bytes of this rank's expert matrices that a pass over one row does not read. All experts have
// the same size and are assumed equally likely on every rank.
std::int64_t idle_bytes_of(const Experts& experts) {
  std::int64_t n_bytes = 0;
  for (const auto* matrices : {&experts.gate, &experts.up, &experts.down}) {
    for (const Matrix& matrix : *matrices) {
      if (matrix.n_columns() == 0) continue;  // on another rank
      n_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    }
  }
  return n_bytes * (experts.n() - experts.n_used) / experts.n();
}

std::int64_t sum_of(const std::vector<int>& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
}

// A layer's parameters that are on other ranks.
std::int64_t parameters_elsewhere(const DecoderLayer& layer, int n_kv_heads) {
  std::int64_t n = 0;
  // For a product with n_whole columns over all ranks.
  const auto add = [&n](const Linear& linear, std::int64_t n_whole) {
    if (linear.empty()) return;
    n +=
        (n_whole - linear.matrix.n_columns()) * (linear.matrix.k() + (linear.bias.empty() ? 0 : 1));
  };
  for_each_linear(layer, [&](const Linear& linear) {
    if (!linear.parts.empty()) add(linear, sum_of(linear.parts));
  });
  const Attention& attention = layer.attention;
  if (!attention.parts.empty()) {
    add(attention.query, sum_of(attention.parts));
    add(attention.gate, sum_of(attention.parts));
    add(attention.key, std::int64_t{n_kv_heads} * attention.head_dim);
    add(attention.value, std::int64_t{n_kv_heads} * attention.head_dim);
  }
  const Experts& experts = layer.experts;
  if (experts.parts.empty()) return n;
  const Range own = experts.own_ids();
  for (const auto* matrices : {&experts.gate, &experts.up, &experts.down}) {
    if (matrices->empty()) continue;  // experts without gate
    const Matrix& one = experts.own(*matrices);
    n += (experts.n() - (own.end - own.begin)) * one.n_columns() * one.k();
  }
  return n;
}

}  // namespace

Footprint DecoderModel::footprint() const {
  Footprint footprint;
  std::set<std::string> kinds;
  const auto share_of = [&](const char* kind) -> Footprint::Share& {
    for (Footprint::Share& share : footprint.shares) {
      if (std::string_view(share.kind) == kind) return share;
    }
    return footprint.shares.emplace_back(Footprint::Share{.kind = kind});
  };
  const auto add_matrix = [&](const Matrix& matrix) {
    if (matrix.n_columns() == 0) return;  // an expert on another rank
    kinds.insert(kernels::name_of(matrix.kind()));
    Footprint::Share& share = share_of(kernels::name_of(matrix.kind()));
    share.n_weights += static_cast<std::int64_t>(matrix.n_columns()) * matrix.k();
    share.n_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    footprint.weight_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    footprint.n_parameters += static_cast<std::int64_t>(matrix.n_columns()) * matrix.k();
    if (matrix.is_in_file()) {
      footprint.mapped_bytes += static_cast<std::int64_t>(matrix.packed_bytes());
    }
  };
  const auto add_vector = [&](const std::vector<float>& vector) {
    footprint.n_parameters += static_cast<std::int64_t>(vector.size());
  };
  const auto add_norm = [&](const Norm& norm) {
    add_vector(norm.weight);
    add_vector(norm.bias);
  };
  const auto add_products_and_norms = [&](const DecoderLayer& layer) {
    for_each_linear(layer, [&](const Linear& linear) {
      add_matrix(linear.matrix);
      add_vector(linear.bias);
    });
    for_each_norm(layer, add_norm);
  };
  for (const DecoderLayer& layer : parts_.weights.encoder_layers) add_products_and_norms(layer);
  add_norm(parts_.weights.encoder_norm);
  for (const DecoderLayer& layer : parts_.weights.layers) {
    add_products_and_norms(layer);
    footprint.n_parameters += parameters_elsewhere(layer, config().n_kv_heads);
    for_each_matrix(layer.latent, add_matrix);
    for_each_matrix(layer.experts, add_matrix);
    for (const auto* biases :
         {&layer.experts.router_bias, &layer.experts.choice_bias, &layer.experts.scales,
          &layer.experts.gate_bias, &layer.experts.up_bias, &layer.experts.down_bias}) {
      add_vector(*biases);
    }
    add_vector(layer.attention.sinks);
    if (!layer.experts.empty()) footprint.idle_bytes += idle_bytes_of(layer.experts);
    add_vector(layer.convolution.weight);
    add_vector(layer.convolution.bias);
    add_vector(layer.delta.filter);
    add_vector(layer.delta.decay_rates);
    add_vector(layer.delta.decay_bias);
    for (const auto* vector :
         {&layer.mamba.filter, &layer.mamba.filter_bias, &layer.mamba.decay_rates,
          &layer.mamba.step_bias, &layer.mamba.skip}) {
      add_vector(*vector);
    }
    footprint.windows.push_back(layer.attention.window);
  }
  const LayerInputs& inputs = parts_.weights.layer_inputs;
  if (!inputs.empty()) {
    add_matrix(inputs.projection.matrix);
    add_norm(inputs.norm);
    footprint.n_parameters += inputs.table.n_elements();
  }
  add_norm(parts_.weights.final_norm);
  const Matrix& head = parts_.weights.head;
  add_matrix(head);
  if (!parts_.weights.head_parts.empty()) {
    footprint.n_parameters +=
        (sum_of(parts_.weights.head_parts) - head.n_columns()) * std::int64_t{head.k()};
  }
  if (!parts_.weights.positions.shape.empty()) {
    footprint.n_parameters += parts_.weights.positions.n_elements();
  }
  if (parts_.weights.head_as_stored.data.data() != parts_.weights.embedding.data.data()) {
    footprint.n_parameters += static_cast<std::int64_t>(config().vocabulary_size) * config().dim;
  }
  for (const std::string& kind : kinds) {
    footprint.weights += footprint.weights.empty() ? kind : " " + kind;
  }
  if (parts_.expert_memory != nullptr) {
    footprint.expert_memory_bytes = static_cast<std::int64_t>(parts_.expert_memory->n_bytes());
  }
  footprint.kernels = parts_.machine.table->name;
  if (parts_.device != nullptr) footprint.device = parts_.device->facts().name;
  footprint.kv = name_of(executor_->kv());
  footprint.kv_bytes_per_token = executor_->kv_bytes_per_token();
  const std::size_t max_kv_bytes = parts_.machine.max_cache_bytes;
  if (max_kv_bytes != PagePool::kUnbounded) {
    footprint.max_kv_bytes = static_cast<std::int64_t>(max_kv_bytes);
  }
  footprint.rank_threads = rank_threads_;
  footprint.state_bytes = executor_->state_bytes();
  footprint.input_bytes_per_node = executor_->input_bytes();
  return footprint;
}

}  // namespace outrider
