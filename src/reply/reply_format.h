// SPDX-License-Identifier: Apache-2.0
// How a model writes tool calls and reasoning in a reply. Derived from its chat template, which
// shows earlier calls in the model's form. docs/tools.md has the table of forms.
#ifndef OUTRIDER_REPLY_REPLY_FORMAT_H_
#define OUTRIDER_REPLY_REPLY_FORMAT_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider {

enum class CallSyntax {
  none,      // no form of calls is known
  json,      // {"name": N, "arguments": {..}}, single, several, or in a list
  named,     // N, a separator, {..} (or as json)
  fenced,    // KIND, a separator, N, {..} in a fence; or N (or an identifier), a separator, {..}
  tagged,    // <function=N> and a <parameter=K> for each argument, or {..}
  paired,    // N, then a key and a TEXT for each argument, each between markers
  python,    // [N(k=v, ..), ..], or N(k=v, ..) on a line each
  bareword,  // call:N{k:v, ..}, texts between the model's own quotes
  channels,  // a message to N with the text {..}
};

// The markers around a part of a reply. An empty begin: there is no such part.
struct MarkerPair {
  std::string begin = {};
  std::string end = {};
};

// The markers of a syntax; unused ones are empty.
struct CallFormat {
  CallSyntax syntax = CallSyntax::none;
  // Markers that open calls, the one that the model is taught first; and the closing marker.
  std::vector<std::string> begins = {};
  std::string end = {};
  // A reply, or the text after its reasoning, may be a call without an opening marker.
  bool may_be_bare = false;
  // Keys of json.
  std::string name_key = "name";
  std::string arguments_key = "arguments";
  // For named and fenced: between the name and what follows it; before an identifier.
  std::string separator = {};
  std::string id_separator = {};
  // For fenced: around a single call. For bareword: around a text.
  std::string call_begin = {};
  std::string call_end = {};
  std::string quote = {};
  // For fenced: the name is part of an identifier, after this prefix and before a colon and a
  // number.
  std::string name_prefix = {};
  // For paired: around the key and the text of an argument.
  MarkerPair key = {};
  MarkerPair value = {};
  // Several calls of json or python are in one list.
  bool in_list = false;
};

// A reply consists of messages, each after a header: START assistant CHANNEL name to=RECIPIENT
// CONSTRAIN type MESSAGE text END. The prompt has begun the first one. No start: the form has no
// messages.
struct ChannelFormat {
  std::string start = {};
  std::string channel = {};
  std::string constrain = {};
  std::string message = {};
  std::vector<std::string> ends = {};
  std::string reasoning = {};  // the channel of reasoning
  std::string functions = {};  // the prefix of recipients that are functions
  bool empty() const { return start.empty(); }
};

struct ReplyFormat {
  std::string name = "none";  // of the form of calls, as in docs/tools.md
  CallFormat calls = {};
  MarkerPair reasoning = {};
  MarkerPair answer = {};  // around text that is not reasoning; not part of the content
  ChannelFormat channels = {};
  // The template reads `tools`; otherwise the model was told of none.
  bool template_takes_tools = false;

  // The spellings of all markers, each once. Many are special tokens, which appear in the text only
  // on request (GenerateOptions::shown_tokens).
  std::vector<std::string> markers() const;
};

// The form that the template shows, or else the form suggested by the special tokens of `tokenizer`
// (may be null). Never throws: an unknown template has plain text.
ReplyFormat find_reply_format(std::string_view chat_template, const Tokenizer* tokenizer);

// A form by its name in docs/tools.md, without reasoning; nullopt for an unknown name.
std::optional<ReplyFormat> reply_format_named(std::string_view name);

// The tokens of `tokenizer` that are markers of the format: for shown_tokens.
std::vector<TokenId> marker_tokens(const ReplyFormat& format, const Tokenizer& tokenizer);

// Whether the prompt has begun the reply's reasoning, as templates do for models that always
// reason: it ends with the opening marker and optional white space.
bool opens_reasoning(const ReplyFormat& format, std::string_view prompt);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_FORMAT_H_
