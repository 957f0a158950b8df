// How a model writes what is more than plain words in a reply: calls of tools, and reasoning. Found
// from its chat template, which shows it an earlier reply's calls in the form that it answers in.
// docs/tools.md has the table of forms.
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
  json,      // {"name": N, "arguments": {..}}, alone, several, or in a list
  named,     // N, a separator, {..} (or as json)
  fenced,    // KIND, a separator, N, {..} in a fence; or N (or an identifier), a separator, {..}
  tagged,    // <function=N> and a <parameter=K> for each argument, or {..}
  paired,    // N, and a key and a TEXT for each argument, each between markers
  python,    // [N(k=v, ..), ..], or N(k=v, ..) on a line each
  bareword,  // call:N{k:v, ..}, texts between quotes of the model's own
  channels,  // a message to N whose text is {..}
};

// What is around a part of a reply. An empty begin: there is no such part.
struct MarkerPair {
  std::string begin = {};
  std::string end = {};
};

// The markers that a syntax has. Those that it has not are empty.
struct CallFormat {
  CallSyntax syntax = CallSyntax::none;
  // What opens calls, what the model is taught to write first, and what closes them.
  std::vector<std::string> begins = {};
  std::string end = {};
  // A reply, or what follows its reasoning, may be a call without what opens one.
  bool may_be_bare = false;
  // Keys of json.
  std::string name_key = "name";
  std::string arguments_key = "arguments";
  // Of named and fenced: between the name and what follows it; before an identifier.
  std::string separator = {};
  std::string id_separator = {};
  // Of fenced: what is around a single call. Of bareword: what is around a text.
  std::string call_begin = {};
  std::string call_end = {};
  std::string quote = {};
  // Of fenced: a name stands in an identifier, behind this and before a colon and a number.
  std::string name_prefix = {};
  // Of paired: around the key and the text of an argument.
  MarkerPair key = {};
  MarkerPair value = {};
  // Several calls of json or python stand in one list.
  bool in_list = false;
};

// A reply is messages, each behind a header that says what it is:
// START assistant CHANNEL name to=RECIPIENT CONSTRAIN type MESSAGE text END, of which the prompt
// has begun the first. No start: the form has no messages.
struct ChannelFormat {
  std::string start = {};
  std::string channel = {};
  std::string constrain = {};
  std::string message = {};
  std::vector<std::string> ends = {};
  std::string reasoning = {};  // the channel of reasoning
  std::string functions = {};  // what recipients that are functions begin with
  bool empty() const { return start.empty(); }
};

struct ReplyFormat {
  std::string name = "none";  // of the form of calls, as in docs/tools.md
  CallFormat calls = {};
  MarkerPair reasoning = {};
  MarkerPair answer = {};  // around what is no reasoning; left out of the content
  ChannelFormat channels = {};
  // The template reads `tools`. Where it does not, nobody has told the model of any.
  bool template_takes_tools = false;

  // The spellings of all markers, each once. Many are special tokens, which are no text unless the
  // engine is asked for them (GenerateOptions::shown_tokens).
  std::vector<std::string> markers() const;
};

// The form that the template teaches. Where it says nothing of it, what the special tokens of
// `tokenizer` (may be null) say. Never throws: an unknown template has plain text.
ReplyFormat find_reply_format(std::string_view chat_template, const Tokenizer* tokenizer);

// A form by its name in docs/tools.md, without reasoning; nullopt: none of that name.
std::optional<ReplyFormat> reply_format_named(std::string_view name);

// The tokens of `tokenizer` that are markers of the format: for shown_tokens.
std::vector<TokenId> marker_tokens(const ReplyFormat& format, const Tokenizer& tokenizer);

// Whether the prompt has begun the reply's reasoning, as templates do for models that always
// reason: it ends with the opening marker, white space aside.
bool opens_reasoning(const ReplyFormat& format, std::string_view prompt);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_REPLY_FORMAT_H_
