#include "model/cache/cache_group.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/kv_layout.h"
#include "outrider/error.h"

namespace outrider {

const char* name_of(kernels::KvKind kind) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8"};
  return kNames[static_cast<int>(kind)];
}

std::size_t KvShape::keys_at(int head) const {
  return static_cast<std::size_t>(head) * kernels::KvLayout{kind, head_dim}.block_bytes();
}

std::size_t CacheGroup::page_bytes() const { return layers.size() * shape.layer_bytes(); }

std::vector<CacheGroup> make_cache_groups(std::span<const LayerCache> layers,
                                          kernels::KvKind kind) {
  if (layers.empty()) throw Error("make cache", "layers", "at least one", "none");
  std::vector<CacheGroup> groups;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const LayerCache& layer = layers[i];
    if (layer.n_heads < 1 || layer.head_dim < 1 || layer.window < 0) {
      throw Error("make cache", fmt::format("layer {}", i),
                  "heads and elements from 1, a window from 0",
                  fmt::format("{}, {}, {}", layer.n_heads, layer.head_dim, layer.window));
    }
    // A group's first layer tells what all of them keep.
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const CacheGroup& it) {
      return layers[static_cast<std::size_t>(it.layers.front())] == layer;
    });
    if (group != groups.end()) {
      group->layers.push_back(static_cast<int>(i));
      continue;
    }
    groups.push_back({.kind = layer.window > 0 ? CacheKind::window : CacheKind::full,
                      .layers = {static_cast<int>(i)},
                      .shape = {.n_heads = layer.n_heads, .head_dim = layer.head_dim, .kind = kind},
                      .window = layer.window});
  }
  return groups;
}

}  // namespace outrider
