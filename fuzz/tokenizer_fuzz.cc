// SPDX-License-Identifier: Apache-2.0
// Any bytes as a tokenizer.json: either an outrider::Error, or a tokenizer that turns text into ids
// of its vocabulary and ids into well-formed text.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/use_tokenizer.h"
#include "outrider/error.h"
#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/pipeline_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    outrider::fuzz::use_tokenizer(
        outrider::PipelineTokenizer(outrider::parse_tokenizer_json(bytes, "fuzz")));
  } catch (const outrider::Error&) {
  }
  return 0;
}
