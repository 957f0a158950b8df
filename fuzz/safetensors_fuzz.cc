// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a safetensors file that is read safely, or give an Error.
#include <cstddef>
#include <cstdint>
#include <span>

#include "fuzz/walk_tensors.h"
#include "io/safetensors/safetensors.h"
#include "outrider/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto source = outrider::parse_safetensors(std::as_bytes(std::span(data, size)), "input");
    outrider::fuzz::walk_tensors(*source);
  } catch (const outrider::Error&) {
  }
  return 0;
}
