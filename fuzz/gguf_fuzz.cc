// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a GGUF file that is read safely, or give an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>

#include "fuzz/walk_tensors.h"
#include "io/gguf/gguf.h"
#include "outrider/error.h"

namespace {

// One typed look-up: the value, or an Error because its type is another.
template <typename LookUp>
bool answers(LookUp look_up) {
  try {
    return static_cast<bool>(look_up());
  } catch (const outrider::Error&) {
    return false;
  }
}

// The bytes of each entry hold its key, after eight bytes of length.
void walk_entries(const outrider::GgufFile& file) {
  if (file.entries().size() != file.metadata().size()) std::abort();
  for (std::size_t i = 0; i < file.entries().size(); ++i) {
    const std::string& key = file.metadata()[i].first;
    const auto bytes = file.entries()[i];
    if (bytes.size() < 8 + key.size() + 4 + 1) std::abort();
    if (std::memcmp(bytes.data() + 8, key.data(), key.size()) != 0) std::abort();
  }
}

void walk_metadata(const outrider::GgufFile& file) {
  for (const auto& entry : file.metadata()) {
    const std::string& key = entry.first;
    if (file.find_metadata(key) != &entry.second) std::abort();
    int n_answers = 0;
    n_answers += answers([&] { return file.integer(key).has_value(); });
    n_answers += answers([&] { return file.real(key).has_value(); });
    n_answers += answers([&] { return file.boolean(key).has_value(); });
    n_answers += answers([&] { return file.string(key) != nullptr; });
    n_answers += answers([&] { return file.strings(key) != nullptr; });
    n_answers += answers([&] { return file.integers(key) != nullptr; });
    n_answers += answers([&] { return file.reals(key) != nullptr; });
    // An integer can also be read as a real number. An array of booleans has no look-up.
    const std::size_t kind = entry.second.index();
    const bool booleans = std::holds_alternative<std::vector<bool>>(entry.second);
    if (n_answers != (kind == 0 ? 2 : booleans ? 0 : 1)) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto file = outrider::parse_gguf(std::as_bytes(std::span(data, size)), "input");
    walk_metadata(*file);
    walk_entries(*file);
    outrider::fuzz::walk_tensors(*file);
  } catch (const outrider::Error&) {
  }
  return 0;
}
