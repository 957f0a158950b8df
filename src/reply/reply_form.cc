// SPDX-License-Identifier: Apache-2.0
#include "reply/reply_form.h"

#include <nlohmann/json.hpp>

#include "reply/tool_grammar.h"

namespace outrider {
namespace {

// The form of a reply that calls a tool.
std::shared_ptr<const Grammar> calls_form(const ReplyFormat& format, const ToolSet& tools,
                                          const ReplyFormOptions& options) {
  const Gbnf gbnf = gbnf_of(
      make_tool_grammar(format, tools, {.name = options.name, .parallel = options.parallel}));
  return Grammar::from_gbnf(gbnf.text, gbnf.schemas);
}

// Exactly these words.
std::shared_ptr<const Grammar> words_form(const std::string& words) {
  return Grammar::from_gbnf("root ::= " + nlohmann::json(words).dump() + "\n");
}

// An answer of that form; if replies are messages, after its header.
std::shared_ptr<const Grammar> answer_form(const ChannelFormat& channels,
                                           const std::shared_ptr<const Grammar>& form) {
  if (form == nullptr || channels.empty()) return form;
  return Grammar::sequence(*words_form(channels.channel + "final" + channels.message), *form);
}

}  // namespace

std::shared_ptr<const Grammar> make_reply_form(const ReplyFormat& format, const ToolSet* tools,
                                               const ReplyFormOptions& options) {
  const ChannelFormat& channels = format.channels;
  std::shared_ptr<const Grammar> form = answer_form(channels, options.answer);
  if (options.must_call) {
    form = calls_form(format, *tools, options);
  } else if (form != nullptr && tools != nullptr) {
    form = Grammar::choice(*calls_form(format, *tools, options), *form);
  }
  if (form == nullptr) return form;
  if (options.behind_reasoning) {
    if (channels.empty()) return form;
    return Grammar::sequence(*words_form(channels.start + "assistant"), *form);
  }
  const std::string reasoning = gbnf_of_reasoning(format, options.in_reasoning);
  if (reasoning.empty()) return form;
  return Grammar::sequence(*Grammar::from_gbnf(reasoning), *form);
}

}  // namespace outrider
