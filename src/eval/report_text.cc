// SPDX-License-Identifier: Apache-2.0
#include "eval/report_text.h"

#include <fmt/format.h>

namespace outrider::eval {

std::string name_of(const SamplingParams& sampling) {
  std::string name = fmt::format("T={}", sampling.temperature);
  if (sampling.top_k != 0) name += fmt::format(" top-k={}", sampling.top_k);
  if (sampling.top_p != 1) name += fmt::format(" top-p={}", sampling.top_p);
  return name;
}

bool same(const SamplingParams& a, const SamplingParams& b) {
  return a.temperature == b.temperature && a.top_k == b.top_k && a.top_p == b.top_p;
}

std::string csv_field(std::string_view text) {
  std::string field = "\"";
  for (const char c : text) {
    if (c == '"') field += c;
    field += c;
  }
  return field + "\"";
}

std::string file_part(std::string_view text) {
  std::string part;
  for (const char c : text) {
    const bool stays = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '=' || c == '-';
    part += stays ? c : '-';
  }
  return part;
}

}  // namespace outrider::eval
