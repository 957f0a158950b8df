// SPDX-License-Identifier: Apache-2.0
#include "model/load/read_size.h"

#include <fmt/format.h>

namespace outrider {

void require_range(const ConfigSource& source, const ConfigKey& key, int value, int least,
                   int most) {
  if (value >= least && value <= most) return;
  source.fail(key, fmt::format("{} to {}", least, most), fmt::format("{}", value));
}

int read_size(const ConfigSource& source, const ConfigKey& key, int otherwise, int least,
              int most) {
  const int size =
      source.is_gguf() ? source.required_whole(key) : source.whole(key).value_or(otherwise);
  require_range(source, key, size, least, most);
  return size;
}

}  // namespace outrider
