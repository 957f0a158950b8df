// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template, with its variables after a zero byte: an Error, or valid UTF-8 text
// within the limits, the same when rendered again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <string>
#include <string_view>

#include "chat_template/render.h"
#include "chat_template/values/characters.h"
#include "outrider/error.h"

namespace {

// Small limits, so that slow templates are stopped early.
constexpr outrider::jinja::Limits kLimits{
    .n_steps = 20'000, .text_bytes = 100'000, .memory_bytes = 2'000'000};

constexpr std::string_view kVariables = R"({"messages": [
    {"role": "system", "content": " be \u00e9 brief "}, {"role": "user", "content": "a\nb"},
    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f",
     "arguments": {"x": [1, 2.5, null, true]}}}]}],
    "tools": [{"name": "f", "parameters": {"type": "object"}}], "add_generation_prompt": true,
    "bos_token": "<s>", "eos_token": "</s>", "n": 3, "x": -0.5, "s": "text", "l": [3, 1, 2]})";

std::tm some_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mday = 1;
  return time;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0');
  const bool has_variables = zero != std::string_view::npos;
  const std::string_view variables = has_variables ? bytes.substr(zero + 1) : kVariables;
  try {
    const outrider::jinja::ParsedTemplate parsed(bytes.substr(0, zero));
    const auto first = outrider::jinja::render(parsed, variables, some_time, kLimits);
    const auto again = outrider::jinja::render(parsed, variables, some_time, kLimits);
    if (first.text != again.text || first.text.size() > kLimits.text_bytes) std::abort();
    if (outrider::jinja::find_bad_byte(first.text) != std::string_view::npos) std::abort();
  } catch (const outrider::Error&) {
  }
  return 0;
}
