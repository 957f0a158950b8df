// SPDX-License-Identifier: Apache-2.0
#include "model/load/attending_layers.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace outrider {
namespace {

constexpr ConfigKey kHeadsByLayer = {nullptr, "attention.head_count_kv"};

}  // namespace

std::optional<std::vector<bool>> read_attends_by_type(const ConfigSource& source,
                                                      const char* hugging_face_key,
                                                      const LayerTypes& types, int n_layers) {
  const ConfigKey key = {hugging_face_key, nullptr};
  const auto names = source.texts(key);
  if (!names) return std::nullopt;
  const auto n = static_cast<std::size_t>(n_layers);
  if (names->size() != n) {
    source.fail(key, fmt::format("{} names", n), fmt::format("{}", names->size()));
  }
  std::vector<bool> attends;
  for (const std::string& name : *names) {
    if (name != types.attends && name != types.recurrent) {
      source.fail(key, fmt::format("{} or {}", types.attends, types.recurrent), name);
    }
    attends.push_back(name == types.attends);
  }
  return attends;
}

std::vector<bool> read_attends_by_heads(const ConfigSource& source, int n_layers) {
  const auto n = static_cast<std::size_t>(n_layers);
  std::vector<bool> attends(n, true);
  const auto heads = source.wholes(kHeadsByLayer);
  if (!heads) return attends;
  if (heads->size() != n) {
    source.fail(kHeadsByLayer, fmt::format("{} numbers", n), fmt::format("{}", heads->size()));
  }
  for (std::size_t i = 0; i < n; ++i) attends[i] = (*heads)[i] != 0;
  return attends;
}

int read_heads_of_attending(const ConfigSource& source, int otherwise) {
  const auto by_layer = source.wholes(kHeadsByLayer);
  if (!by_layer) return otherwise;
  int n_heads = 0;
  for (const int n : *by_layer) {
    if (n_heads == 0) n_heads = n;
    if (n != 0 && n != n_heads) {
      source.fail(kHeadsByLayer, fmt::format("0 or {}, as the first", n_heads),
                  fmt::format("{}", n));
    }
  }
  return n_heads == 0 ? otherwise : n_heads;
}

}  // namespace outrider
