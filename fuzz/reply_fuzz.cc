// SPDX-License-Identifier: Apache-2.0
// Any bytes as a model's reply, in any call format, cut anywhere. The events equal those for the
// uncut reply. Calls begin and end in order and have JSON objects as arguments. Whatever is neither
// call nor reasoning is content, byte for byte.
//
// The first byte selects the format, the second the other options, the third the cuts.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string_view>
#include <vector>

#include "chat_template/values/characters.h"
#include "reply/reply_trace.h"

namespace {

using outrider::ReplyFormat;
using outrider::ReplyParserOptions;
using outrider::ReplyTrace;
using outrider::ToolSet;
using outrider::trace_reply;

constexpr std::array kForms = {"hermes",      "llama", "mistral-named", "deepseek",
                               "qwen3-coder", "gemma", "functiongemma", "command",
                               "harmony",     "glm",   "lfm2",          "olmo3"};

std::shared_ptr<const ToolSet> tools() {
  static const auto set = std::make_shared<const ToolSet>(
      R"([{"name": "f", "parameters": {"properties": {"a": {"type": "string"},
           "n": {"type": "integer"}}}}, {"name": "g"}])");
  return set;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void check_cut(const ReplyFormat& format, const ReplyParserOptions& options, std::string_view text,
               unsigned seed, const ReplyTrace& whole) {
  std::minstd_rand random(seed + 1);
  std::vector<std::size_t> cuts;
  std::size_t at = 0;
  while (at < text.size()) {
    at = std::min<std::size_t>(text.size(), at + 1 + random() % (1 + seed % 16));
    cuts.push_back(at);
  }
  require(trace_reply(format, options, text, cuts).lines == whole.lines);
}

// True if `part` is a subsequence of the bytes of `text`.
bool is_subsequence(std::string_view part, std::string_view text) {
  for (const char byte : part) {
    const std::size_t at = text.find(byte);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + 1);
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 3) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 3), size - 3);
  ReplyFormat format = outrider::reply_format_named(kForms[data[0] % kForms.size()]).value();
  ReplyParserOptions options;
  if ((data[1] & 1) != 0) options.tools = tools();
  if ((data[1] & 2) != 0) format.reasoning = {"<think>", "</think>"};
  options.in_reasoning = (data[1] & 4) != 0;

  const ReplyTrace whole = trace_reply(format, options, text);
  require(whole.in_order);
  check_cut(format, options, text, data[2], whole);

  const bool is_utf8 = outrider::jinja::find_bad_byte(text) == std::string_view::npos;
  bool has_calls = false;
  for (const outrider::TracedCall& call : whole.calls) {
    require(call.ended && !call.name.empty());
    has_calls |= call.complete;
    if (!call.complete || !is_utf8) continue;
    require(nlohmann::json::accept(call.arguments) && call.arguments.front() == '{');
  }
  require(is_subsequence(whole.content, text) && is_subsequence(whole.reasoning, text));
  if (!has_calls && format.reasoning.begin.empty()) require(whole.content == text);
  return 0;
}
