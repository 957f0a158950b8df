// SPDX-License-Identifier: Apache-2.0
#include "model/load/read_size.h"

#include <fmt/format.h>

namespace outrider {

void require_range(const ConfigSource& source, const ConfigKey& key, int value, int min, int max) {
  if (value >= min && value <= max) return;
  source.fail(key, fmt::format("{} to {}", min, max), fmt::format("{}", value));
}

int read_size(const ConfigSource& source, const ConfigKey& key, int otherwise, int min, int max) {
  const int size =
      source.is_gguf() ? source.required_whole(key) : source.whole(key).value_or(otherwise);
  require_range(source, key, size, min, max);
  return size;
}

}  // namespace outrider
