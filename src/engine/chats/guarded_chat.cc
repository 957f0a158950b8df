// SPDX-License-Identifier: Apache-2.0
// Prompts in which no message can spell a special token.
//
// The template's own special tokens are found by rendering the same conversation with neutral words
// instead of each message. A prompt with exactly these tokens is right as it is. Otherwise each
// spelling of a special token within a message is put between two mark characters that occur
// nowhere else. The template is rendered, and text that still stands between a pair of marks is
// literal text for the tokenizer. Templates may cut or replace parts of a message, so the ids are
// checked again: a prompt with other special tokens than the template's is refused.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/chat.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The noncharacters U+FDD0 to U+FDEF, which Unicode reserves for internal use: three bytes each.
constexpr int kCandidates = 32;
constexpr std::size_t kMarkBytes = 3;
std::string candidate(int i) { return {'\xEF', '\xB7', static_cast<char>(0x90 + i)}; }

struct Marks {
  std::string open, close;
};

// Chooses two that the text does not contain.
Marks choose_marks(std::string_view messages) {
  std::vector<std::string> free;
  for (int i = 0; i < kCandidates && free.size() < 2; ++i) {
    const std::string mark = candidate(i);
    if (messages.find(mark) == std::string_view::npos) free.push_back(mark);
  }
  if (free.size() < 2) {
    throw Error("guard messages", "messages", "some noncharacters of U+FDD0 to U+FDEF left out",
                "all but one of them");
  }
  return {free[0], free[1]};
}

std::vector<TokenId> special_ids(const std::vector<TokenId>& ids, const Tokenizer& tokenizer) {
  std::vector<TokenId> special;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(special),
               [&](TokenId id) { return tokenizer.is_special(id); });
  return special;
}

bool spells_special(const std::string& text, const Tokenizer& tokenizer) {
  const std::vector<TextRange> ranges = tokenizer.added_tokens_in(text);
  return std::any_of(ranges.begin(), ranges.end(), [&](const TextRange& range) {
    const std::string spelling = text.substr(range.begin, range.end - range.begin);
    return !special_ids(tokenizer.encode(spelling, false), tokenizer).empty();
  });
}

// Lists the texts of messages to guard: contents, and any other value that spells a special token
// (arguments of calls, names). Not roles and member names, on which templates branch.
void list_guarded(Json& value, const Tokenizer& tokenizer, std::vector<std::string*>& guarded) {
  const auto refuse = [&](const std::string& text, const char* what) {
    if (!spells_special(text, tokenizer)) return;
    throw Error("guard messages", what, "a text without special tokens", text);
  };
  if (value.is_array()) {
    for (Json& one : value) list_guarded(one, tokenizer, guarded);
  } else if (value.is_string()) {
    auto* const text = value.get_ptr<std::string*>();
    if (spells_special(*text, tokenizer)) guarded.push_back(text);
  } else if (value.is_object()) {
    for (auto& [name, member] : value.items()) {
      refuse(name, "member");
      auto* const text = member.get_ptr<std::string*>();
      if (name == "role" && text != nullptr) {
        refuse(*text, "role");
      } else if (name == "content" && text != nullptr) {
        if (!text->empty()) guarded.push_back(text);
      } else {
        list_guarded(member, tokenizer, guarded);
      }
    }
  }
}

// Puts marks around each spelling of a special token in the message; adds the spellings to
// `spellings`.
std::string with_marks(const std::string& content, const Tokenizer& tokenizer, const Marks& marks,
                       std::set<std::string, std::less<>>& spellings) {
  std::string marked;
  std::size_t done = 0;
  for (const TextRange& range : tokenizer.added_tokens_in(content)) {
    const std::string spelling = content.substr(range.begin, range.end - range.begin);
    const std::vector<TokenId> ids = tokenizer.encode(spelling, false);
    if (special_ids(ids, tokenizer).empty()) continue;
    marked.append(content, done, range.begin - done);
    marked.append(marks.open).append(spelling).append(marks.close);
    spellings.insert(spelling);
    done = range.end;
  }
  return marked.append(content, done);
}

// Removes the marks. Text between an opening mark and the next closing one is literal if it is a
// spelling; if the template has cut it, nothing is left to guard.
ChatPrompt without_marks(std::string_view text, const Marks& marks,
                         const std::set<std::string, std::less<>>& spellings) {
  ChatPrompt found;
  std::size_t begin = std::string::npos;  // in found.text, after the last opening mark
  while (!text.empty()) {
    if (text.starts_with(marks.open)) {
      begin = found.text.size();
      text.remove_prefix(kMarkBytes);
    } else if (text.starts_with(marks.close)) {
      if (begin != std::string::npos && spellings.contains(found.text.substr(begin))) {
        found.literals.push_back({begin, found.text.size()});
      }
      begin = std::string::npos;
      text.remove_prefix(kMarkBytes);
    } else {
      found.text += text.front();
      text.remove_prefix(1);
    }
  }
  return found;
}

}  // namespace

ChatPrompt render_chat_json(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                            std::string_view messages, MessageGuard guard,
                            const ChatOptions& options) {
  const auto render = [&](std::string_view list) {
    return chat_template.render(chat_variables(&tokenizer, list, options), options.clock);
  };
  ChatPrompt prompt{.text = render(messages)};
  if (guard == MessageGuard::none) return prompt;
  const auto special = [&](const ChatPrompt& of) {
    return special_ids(tokenizer.encode_with_literals(of.text, false, of.literals), tokenizer);
  };
  const Json given = Json::parse(messages);  // valid: render() has parsed it
  Json changed = given;
  std::vector<std::string*> guarded;
  list_guarded(changed, tokenizer, guarded);
  for (std::string* const text : guarded) text->assign(1, 'x');
  const std::vector<TokenId> own = special({.text = render(dumped(changed))});
  if (special(prompt) == own) return prompt;

  changed = given;
  guarded.clear();
  list_guarded(changed, tokenizer, guarded);
  // Checks the template's output as well: a U+FDD0 in it must not be removed.
  const Marks marks = choose_marks(std::string(messages) + prompt.text);
  std::set<std::string, std::less<>> spellings;
  for (std::string* const text : guarded) *text = with_marks(*text, tokenizer, marks, spellings);
  prompt = without_marks(render(dumped(changed)), marks, spellings);
  if (special(prompt) != own) {
    throw Error("guard messages", "prompt", "the template's own special tokens",
                "others, which the template makes out of a message");
  }
  return prompt;
}

std::vector<TokenId> encode_chat(const ChatTemplate& chat_template, const Tokenizer& tokenizer,
                                 std::span<const ChatMessage> messages, MessageGuard guard,
                                 const ChatOptions& options) {
  Json list = Json::array();
  for (const ChatMessage& message : messages) {
    list.push_back({{"role", message.role}, {"content", message.content}});
  }
  const ChatPrompt prompt =
      render_chat_json(chat_template, tokenizer, dumped(list), guard, options);
  return tokenizer.encode_with_literals(prompt.text, false, prompt.literals);
}

}  // namespace outrider
