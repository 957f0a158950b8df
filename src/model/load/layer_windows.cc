// SPDX-License-Identifier: Apache-2.0
#include "model/load/layer_windows.h"

#include <fmt/format.h>

namespace outrider {

int read_window(const ConfigSource& source, const ConfigKey& key, int otherwise) {
  constexpr int kMaxWindow = 1 << 24;
  const std::optional<int> window = source.whole(key);
  if (!window) return otherwise;
  if (*window < 1 || *window > kMaxWindow) {
    source.fail(key, fmt::format("1 to {}", kMaxWindow), fmt::format("{}", *window));
  }
  return *window;
}

std::optional<std::vector<int>> read_layer_windows(const ConfigSource& source, int n_layers,
                                                   int window) {
  constexpr ConfigKey kTypes = {"layer_types", nullptr};
  const auto types = source.texts(kTypes);
  if (!types) return std::nullopt;
  if (types->size() != static_cast<std::size_t>(n_layers)) {
    source.fail(kTypes, fmt::format("{} names", n_layers), fmt::format("{}", types->size()));
  }
  std::vector<int> windows;
  for (const std::string& type : *types) {
    if (type == "full_attention") {
      windows.push_back(0);
    } else if (type == "sliding_attention") {
      if (window < 1) {
        source.fail({"sliding_window", nullptr}, "at least 1 where a layer has a window",
                    fmt::format("{}", window));
      }
      windows.push_back(window);
    } else {
      source.fail(kTypes, "full_attention or sliding_attention", type);
    }
  }
  return windows;
}

}  // namespace outrider
