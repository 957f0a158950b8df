// SPDX-License-Identifier: Apache-2.0
#include "model/cache/cache_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/kv_layout.h"
#include "outrider/error.h"

namespace outrider {

const char* name_of(kernels::KvKind kind) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8"};
  return kNames[static_cast<int>(kind)];
}

std::size_t KvShape::keys_at(int head) const {
  return static_cast<std::size_t>(head) * kernels::KvLayout{kind, head_dim}.block_bytes();
}

std::size_t CacheGroup::layer_bytes() const {
  if (has_keys(kind)) return shape.layer_bytes();
  const std::size_t n_floats =
      kind == CacheKind::state
          ? static_cast<std::size_t>(recurrent.state_width)
          : static_cast<std::size_t>(kInputNodes) * static_cast<std::size_t>(recurrent.input_width);
  constexpr std::size_t kLine_bytes = 64;
  return (n_floats * sizeof(float) + kLine_bytes - 1) / kLine_bytes * kLine_bytes;
}

namespace {

// Adds a recurrent layer to the group of states and to that of inputs.
void add_recurrent(const RecurrentShape& shape, int layer, std::vector<CacheGroup>& groups) {
  if (groups.empty()) {
    for (const CacheKind kind : {CacheKind::state, CacheKind::inputs}) {
      groups.push_back({.kind = kind, .layers = {}, .shape = {}, .window = 0, .recurrent = shape});
    }
  }
  const bool has_sizes = shape.state_width > 0 && shape.input_width > 0;
  const bool is_right = shape.recurrence == Recurrence::convolution
                            ? has_sizes && shape.state_width % shape.input_width == 0
                            : shape.state_width == shape.delta.state_width() &&
                                  shape.input_width == shape.delta.input_width();
  if (!has_sizes || !is_right || shape != groups.front().recurrent) {
    throw Error(
        "make cache", fmt::format("layer {}", layer),
        "a state as its kind has it, and as the first recurrent layer's",
        fmt::format("{} and {} beside {} and {}", shape.state_width, shape.input_width,
                    groups.front().recurrent.state_width, groups.front().recurrent.input_width));
  }
  for (CacheGroup& group : groups) group.layers.push_back(layer);
}

}  // namespace

std::vector<CacheGroup> make_cache_groups(std::span<const LayerCache> layers,
                                          kernels::KvKind kind) {
  if (layers.empty()) throw Error("make cache", "layers", "at least one", "none");
  std::vector<CacheGroup> groups;
  std::vector<CacheGroup> recurrent;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerCache& layer = layers[i];
    if (layer.is_recurrent() && layer.n_heads == 0) {
      add_recurrent(layer.recurrent, static_cast<int>(i), recurrent);
      continue;
    }
    if (layer.is_recurrent() || layer.n_heads < 1 || layer.head_dim < 1 || layer.window < 0 ||
        layer.values_in_keys < 0 || layer.values_in_keys > layer.head_dim) {
      throw Error("make cache", fmt::format("layer {}", i),
                  "heads and elements from 1, a window from 0, values of at most a key's width",
                  fmt::format("{}, {}, {}, {}", layer.n_heads, layer.head_dim, layer.window,
                              layer.values_in_keys));
    }
    // All layers of a group have the shape of its first layer.
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const CacheGroup& it) {
      return layers[static_cast<std::size_t>(it.layers.front())] == layer;
    });
    if (group != groups.end()) {
      group->layers.push_back(static_cast<int>(i));
      continue;
    }
    groups.push_back({.kind = layer.window > 0 ? CacheKind::window : CacheKind::full,
                      .layers = {static_cast<int>(i)},
                      .shape = {.n_heads = layer.n_heads,
                                .head_dim = layer.head_dim,
                                .kind = kind,
                                .values_in_keys = layer.values_in_keys},
                      .window = layer.window,
                      .recurrent = {},
                      .side = layer.side});
  }
  groups.insert(groups.end(), recurrent.begin(), recurrent.end());
  return groups;
}

}  // namespace outrider
