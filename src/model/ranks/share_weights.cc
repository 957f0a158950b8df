// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/share_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

[[noreturn]] void refuse(const std::string& object, const std::string& expected,
                         const std::string& got) {
  throw UsageError("split model", object, expected, got);
}

// Takes those rows of the product and of its bias.
void take_rows(const Range& rows, int n_threads, Linear& linear) {
  if (linear.empty()) return;
  linear.matrix = linear.matrix.pack_rows(rows, n_threads);
  if (linear.bias.empty()) return;
  linear.bias =
      std::vector<float>(linear.bias.begin() + rows.begin, linear.bias.begin() + rows.end);
}

Range times(const Range& range, int factor) { return {range.begin * factor, range.end * factor}; }

void share_attention(const RankShare& share, int n_threads, Attention& attention) {
  if (attention.norms_all_heads) {
    refuse("attention", "norms of single heads (a norm of all heads reads whole rows)",
           "one of all heads together");
  }
  if (attention.position_bias != nullptr || !attention.has_own_keys()) {
    refuse("attention", "keys of its own and no bias by distance", "another kind");
  }
  if (attention.query.empty()) return;
  const int head_dim = attention.head_dim;
  const HeadShare heads = share_heads(attention.n_heads, attention.n_kv_heads, share);
  const Range queries = times(heads.queries, head_dim);
  const Range keys = times(heads.keys, head_dim);
  take_rows(queries, n_threads, attention.query);
  take_rows(queries, n_threads, attention.gate);
  take_rows(keys, n_threads, attention.key);
  take_rows(keys, n_threads, attention.value);
  if (!attention.sinks.empty()) {
    attention.sinks = std::vector<float>(attention.sinks.begin() + heads.queries.begin,
                                         attention.sinks.begin() + heads.queries.end);
  }
  attention.parts = split_evenly(attention.n_heads, share.n_ranks);
  for (int& part : attention.parts) part *= head_dim;
  attention.group = attention.n_heads / attention.n_kv_heads;
  attention.first_in_group =
      static_cast<int>(heads.queries.begin - heads.keys.begin * attention.group);
  attention.n_heads = static_cast<int>(heads.queries.end - heads.queries.begin);
  attention.n_kv_heads = static_cast<int>(heads.keys.end - heads.keys.begin);
  share_columns(share, n_threads, attention.output);
}

void share_experts(const RankShare& share, int n_threads, Experts& experts) {
  if (experts.empty()) return;
  if (!experts.narrow.empty()) {
    refuse("experts", "ones that read what their router reads", "ones that read a narrower row");
  }
  if (experts.up.front().n_columns() == 0) return;
  experts.parts = split_evenly(experts.n(), share.n_ranks);
  experts.rank = share.rank;
  const Range own = experts.own_ids();
  for (std::vector<Matrix>* matrices : {&experts.gate, &experts.up, &experts.down}) {
    for (int id = 0; id < static_cast<int>(matrices->size()); ++id) {
      Matrix& matrix = (*matrices)[static_cast<std::size_t>(id)];
      matrix = id >= own.begin && id < own.end
                   ? matrix.pack_rows({0, matrix.n_columns()}, n_threads)
                   : Matrix();
    }
  }
}

}  // namespace

void require_splittable(const Family& family, int n_ranks) {
  const ModelConfig& config = family.config();
  const std::string model = fmt::format("a {} over {} ranks", config.architecture, n_ranks);
  const std::string kExpected = "decoder layers of attention with keys of their own";
  if (config.has_encoder()) refuse(model, kExpected, "an encoder-decoder");
  if (config.latent_dim > 0) refuse(model, kExpected, "latent attention");
  if (family.recurrent_layers().n > 0) refuse(model, kExpected, "recurrent layers");
  if (config.layer_input_dim > 0) refuse(model, kExpected, "a second embedding for each layer");
  if (config.whole_n_kv_heads > 0) refuse(model, kExpected, "heads of two shapes");
  if (std::any_of(config.lenders.begin(), config.lenders.end(),
                  [](int lender) { return lender >= 0; })) {
    refuse(model, kExpected, "layers that read others' keys");
  }
  if (config.n_heads < n_ranks) {
    refuse(model, fmt::format("at most {} ranks, one for each query head", config.n_heads),
           fmt::format("{}", n_ranks));
  }
  if (config.n_experts > 0 && config.n_experts < n_ranks) {
    refuse(model, fmt::format("at most {} ranks, one for each expert", config.n_experts),
           fmt::format("{}", n_ranks));
  }
}

void share_columns(const RankShare& share, int n_threads, Linear& linear) {
  if (linear.empty()) return;
  linear.parts = split_columns(linear.matrix.n_columns(), share.n_ranks);
  take_rows(part_of(linear.parts, share.rank), n_threads, linear);
}

void share_layer(const RankShare& share, int n_threads, DecoderLayer& layer) {
  share_attention(share, n_threads, layer.attention);
  for (Linear* linear : {&layer.mlp.gate, &layer.mlp.up, &layer.mlp.down, &layer.plain_mlp.up,
                         &layer.plain_mlp.down, &layer.shared_expert.mlp.gate,
                         &layer.shared_expert.mlp.up, &layer.shared_expert.mlp.down}) {
    share_columns(share, n_threads, *linear);
  }
  share_experts(share, n_threads, layer.experts);
  for_each_linear(layer, [](const Linear& linear) {
    if (linear.matrix.is_in_file()) refuse("layer", "products that can be split", "another one");
  });
}

}  // namespace outrider
