// SPDX-License-Identifier: Apache-2.0
#include "model/load/modules_behind.h"

#include <fmt/format.h>

namespace outrider {

int read_n_modules_behind(const ConfigSource& source) {
  constexpr ConfigKey kModules = {nullptr, "nextn_predict_layers"};
  constexpr ConfigKey kLayers = {nullptr, "block_count"};
  const int n_modules = source.whole(kModules).value_or(0);
  const int n_layers = source.whole(kLayers).value_or(1);
  if (n_modules < 0 || n_modules >= n_layers) {
    source.fail(kModules, fmt::format("0 to {}", n_layers - 1), fmt::format("{}", n_modules));
  }
  return n_modules;
}

}  // namespace outrider
