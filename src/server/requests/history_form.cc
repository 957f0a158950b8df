// SPDX-License-Identifier: Apache-2.0
#include "server/requests/history_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "outrider/error.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

// Words that occur in no template. The identifier has a form that Mistral's templates accept.
constexpr const char* kName = "outrider_tool";
constexpr const char* kKey = "outrider_key";
constexpr const char* kValue = "outrider_value";
constexpr const char* kResult = "outrider_result";
constexpr const char* kOtherResult = "outrider_other";
constexpr const char* kThought = "outrider_thought";
constexpr const char* kId = "outrider1";
constexpr const char* kOtherId = "outrider2";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Json tools_of_probe() {
  return Json::array(
      {{{"type", "function"},
        {"function",
         {{"name", kName},
          {"description", "d"},
          {"parameters",
           {{"type", "object"},
            {"properties", {{"p", {{"type", "string"}, {"description", "d"}}}}}}}}}}});
}

Json user(const char* words) { return {{"role", "user"}, {"content", words}}; }

// The members of a message with a call.
Json call(bool arguments_as_text, bool null_content) {
  const Json arguments = {{kKey, kValue}};
  Json function = {{"name", kName}};
  function["arguments"] = arguments_as_text ? Json(arguments.dump()) : arguments;
  Json message = {{"role", "assistant"}, {"content", nullptr}};
  if (!null_content) message["content"] = "";
  message["tool_calls"] =
      Json::array({{{"id", kId}, {"type", "function"}, {"function", std::move(function)}}});
  return message;
}

Json result(const std::string& role, const std::string& content = kResult, const char* id = kId) {
  return {{"role", role}, {"content", content}, {"name", kName}, {"tool_call_id", id}};
}

class Probe {
 public:
  Probe(const ChatTemplate& chat_template, const Tokenizer* tokenizer)
      : template_(chat_template), tokenizer_(tokenizer) {}

  // The template's rendering of the messages; "" if it refuses them.
  std::string shown(const Json& messages, bool with_tools = true) const {
    ChatOptions options;
    if (with_tools) options.tools = dumped(tools_of_probe());
    try {
      return template_.render(chat_variables(tokenizer_, dumped(messages), options), options.clock);
    } catch (const Error&) {
      return "";
    }
  }

 private:
  const ChatTemplate& template_;
  const Tokenizer* tokenizer_;
};

// Whether the prompt shows the arguments, neither as Python prints an object nor as JSON within a
// JSON string.
bool shows_call(std::string_view prompt) {
  return contains(prompt, kKey) && contains(prompt, kValue) &&
         !contains(prompt, "{'outrider_key'") && !contains(prompt, "\\\"outrider_key");
}

void try_calls(const Probe& probe, HistoryForm& form) {
  for (const bool null_content : {false, true}) {
    for (const bool as_text : {false, true}) {
      // Some templates show calls only before their results, some only without these.
      const Json asked = user("q");
      const Json calls = call(as_text, null_content);
      if (!shows_call(probe.shown(Json::array({asked, calls, result("tool")}))) &&
          !shows_call(probe.shown(Json::array({asked, calls})))) {
        continue;
      }
      form.arguments_as_text = as_text;
      form.null_content = null_content;
      return;
    }
  }
  form.calls_in_content = true;
}

Json calls_of_form(const HistoryForm& form) {
  Json message = call(form.arguments_as_text, form.null_content);
  if (form.calls_in_content) {
    message.erase("tool_calls");
    message["content"] = "c";
  }
  return message;
}

void try_results(const Probe& probe, HistoryForm& form) {
  for (const char* const role :
       {"tool", "environment", "tool_response", "ipython", "observation", "user"}) {
    const Json messages = Json::array({user("q"), calls_of_form(form), result(role)});
    if (!contains(probe.shown(messages), kResult)) continue;
    form.result_role = role;
    break;
  }
  if (form.result_role == "user") {
    form.joins_results = true;
    return;
  }
  const auto shows_both = [&](Json messages) {
    Json calls = calls_of_form(form);
    if (calls.contains("tool_calls")) {
      calls["tool_calls"].push_back(calls["tool_calls"][0]);
      calls["tool_calls"][1]["id"] = kOtherId;
    }
    messages.insert(messages.begin(), {user("q"), calls});
    const std::string prompt = probe.shown(messages);
    return contains(prompt, kResult) && contains(prompt, kOtherResult);
  };
  const std::string& role = form.result_role;
  form.joins_results =
      !shows_both(Json::array({result(role), result(role, kOtherResult, kOtherId)})) &&
      shows_both(Json::array({result(role, std::string(kResult) + "\n\n" + kOtherResult)}));
}

// Some templates show the reasoning of calls that have no answer yet, some that of answers.
void try_reasoning(const Probe& probe, HistoryForm& form) {
  for (const char* const member : {"reasoning_content", "reasoning", "thinking"}) {
    Json calls = calls_of_form(form);
    calls[member] = kThought;
    const Json answer = {{"role", "assistant"}, {"content", "a"}, {member, kThought}};
    if (!contains(probe.shown(Json::array({user("q"), calls, result(form.result_role)})),
                  kThought) &&
        !contains(probe.shown(Json::array({user("q"), answer}), false), kThought)) {
      continue;
    }
    form.reasoning_member = member;
    return;
  }
}

// A text member; "" if there is none.
std::string text_of(const Json& object, const std::string& member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The functions without OpenAI's wrapper.
Json functions_of(const Json& tools) {
  Json functions = Json::array();
  for (const Json& tool : tools) functions.push_back(tool.value("function", tool));
  return functions;
}

void put_into_system(const Json& tools, Json& messages) {
  if (messages.empty() || text_of(messages.front(), "role") != "system") {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  }
  messages.front()["tools"] = dumped(functions_of(tools));
}

void try_tools(const Probe& probe, HistoryForm& form) {
  Json messages = Json::array({user("q")});
  if (contains(probe.shown(messages), kName)) return;
  put_into_system(tools_of_probe(), messages);
  form.tools_in_system = contains(probe.shown(messages), kName);
}

// An object, or the invalid text that a model wrote instead.
Json arguments_as_object(const Json& arguments) {
  if (!arguments.is_string()) return arguments;
  const std::string& text = arguments.get_ref<const std::string&>();
  if (text.empty()) return Json::object();
  try {
    return parse_json(text);
  } catch (const ApiError&) {
    return arguments;
  }
}

Json arguments_as_text(const Json& arguments) {
  if (!arguments.is_string()) return dumped(arguments);
  return arguments.get_ref<const std::string&>().empty() ? Json("{}") : arguments;
}

// Adapts messages to the template, one by one.
class Fitting {
 public:
  // `texts`: all texts given to the template.
  Fitting(const HistoryForm& form, const ReplyFormat& format, std::string_view texts)
      : form_(form), format_(format), placed_{.sign = free_sign(texts)} {}

  // `path`: the message's name in errors.
  void fit(Json& message, const std::string& path) {
    fit_reasoning(message);
    if (has_calls(message)) fit_calls(message, path);
  }
  PlacedCalls take_placed() { return std::move(placed_); }

 private:
  // A noncharacter that occurs in no text (U+FDD0 to U+FDEF from the end on; the message guard
  // takes them from the beginning on); "" if all occur.
  static std::string free_sign(std::string_view texts) {
    constexpr int kSigns = 32;
    for (int i = kSigns; i-- > 0;) {
      const std::string sign = {'\xEF', '\xB7', static_cast<char>(0x90 + i)};
      if (!contains(texts, sign)) return sign;
    }
    return "";
  }

  static bool has_calls(const Json& message) {
    const auto calls = message.find("tool_calls");
    return calls != message.end() && calls->is_array() && !calls->empty();
  }

  // A call that the model's form can spell: with its arguments, or with a placeholder for them.
  SpelledCall spellable(const Json& function, const std::string& path) const {
    Json arguments = arguments_as_object(function.value("arguments", Json()));
    if (arguments.is_null()) arguments = Json::object();
    SpelledCall call{text_of(function, "name"), std::move(arguments)};
    const std::span<const SpelledCall> one(&call, 1);
    if (call.arguments.is_object() && spelled_calls(format_, one)) return call;
    if (!call.arguments.is_string()) call.arguments = dumped(call.arguments);
    if (spelled_calls(format_, one)) return call;
    throw ApiError(
        400,
        fmt::format("{}.tool_calls: expected calls that the model's form ({}) can spell, since its "
                    "chat template shows none, got a call of '{}'",
                    path, format_.name, call.name),
        path);
  }

  // Appends a placeholder for the calls to the content.
  void place_calls(Json& message, const std::string& path) {
    std::vector<SpelledCall> calls;
    for (const Json& each : message["tool_calls"]) {
      calls.push_back(spellable(each.value("function", Json::object()), path));
    }
    if (placed_.sign.empty()) {
      throw ApiError(400, "messages: expected texts without one of U+FDD0 to U+FDEF, got all",
                     "messages");
    }
    const std::string place = placed_.sign + std::to_string(placed_.calls.size()) + placed_.sign;
    message["content"] = text_of(message, "content") + place;
    message.erase("tool_calls");
    placed_.calls.push_back(spelled_calls(format_, calls).value());
  }

  void fit_calls(Json& message, const std::string& path) {
    // A template that requires null as the content of calls omits them beside any other content.
    const bool says = !text_of(message, "content").empty();
    if (form_.calls_in_content || (form_.null_content && says)) return place_calls(message, path);
    for (Json& each : message["tool_calls"]) {
      Json& function = each["function"];
      const auto arguments = function.find("arguments");
      if (arguments == function.end()) continue;
      *arguments =
          form_.arguments_as_text ? arguments_as_text(*arguments) : arguments_as_object(*arguments);
    }
    if (form_.null_content) message["content"] = nullptr;
  }

  // Clients name it `reasoning_content` (like the server) or `reasoning`, and may send null.
  void fit_reasoning(Json& message) const {
    for (const std::string member : {"reasoning_content", "reasoning", "thinking"}) {
      if (message.contains(member) && message[member].is_null()) message.erase(member);
    }
    for (const char* const member : {"reasoning_content", "reasoning"}) {
      const auto found = message.find(member);
      if (found == message.end() || !found->is_string() || message.contains(form_.reasoning_member))
        continue;
      Json reasoning = std::move(*found);
      message.erase(member);
      message[form_.reasoning_member] = std::move(reasoning);
    }
    // gpt-oss' template refuses calls with both content and reasoning: the content becomes
    // reasoning.
    if (format_.channels.empty() || !has_calls(message)) return;
    const std::string thought = text_of(message, form_.reasoning_member);
    const std::string said = text_of(message, "content");
    if (thought.empty() || said.empty()) return;
    message[form_.reasoning_member] = thought + "\n\n" + said;
    message["content"] = "";
  }

  const HistoryForm& form_;
  const ReplyFormat& format_;
  PlacedCalls placed_;
};

// Collects messages. Tool results get the role that the template accepts, and are joined if it does
// not accept two of that role in a row.
class Turns {
 public:
  explicit Turns(const HistoryForm& form) : form_(form) {}

  // Called before the message is adapted, which may remove its calls.
  void note_calls(const Json& message) {
    const auto calls = message.find("tool_calls");
    if (calls == message.end() || !calls->is_array()) return;
    for (const Json& call : *calls) {
      const std::string id = text_of(call, "id");
      if (!id.empty()) names_[id] = text_of(call.value("function", Json::object()), "name");
    }
  }

  void add(Json message) {
    std::string role = text_of(message, "role");
    const bool is_result = role == "tool";
    const std::string label = is_result ? label_of(message) : "";
    if (is_result) role = form_.result_role;
    const bool joins = form_.joins_results && !messages_.empty() && role == last_role_ &&
                       (is_result || last_has_result_);
    if (!joins) {
      if (is_result) message["role"] = role;
      messages_.push_back(std::move(message));
      last_role_ = role;
      last_has_result_ = is_result;
      last_label_ = label;
      if (is_result && role == "user") put_label();
      return;
    }
    put_label();
    Json& last = messages_.back();
    last["content"] = text_of(last, "content") + "\n\n" + label + text_of(message, "content");
    last_has_result_ = true;
  }

  Json take() { return std::move(messages_); }

 private:
  // The tool's name from the message or its call; "" if neither has one.
  std::string label_of(const Json& result) const {
    std::string name = text_of(result, "name");
    if (name.empty()) {
      const auto found = names_.find(text_of(result, "tool_call_id"));
      if (found != names_.end()) name = found->second;
    }
    return name.empty() ? "" : name + ": ";
  }

  // Adds the label before the first result of the last message, which was single until now.
  void put_label() {
    Json& content = messages_.back()["content"];
    if (content.is_string()) content = last_label_ + content.get<std::string>();
    last_label_.clear();
  }

  const HistoryForm& form_;
  Json messages_ = Json::array();
  std::map<std::string, std::string> names_;  // names of tools, by the calls' identifiers
  std::string last_role_;
  bool last_has_result_ = false;
  std::string last_label_;  // not written yet
};

// Writes a prompt again, with calls instead of placeholders.
class PromptWriter {
 public:
  explicit PromptWriter(const ChatPrompt& prompt) : prompt_(prompt) {}

  // Copies the prompt's own text up to there.
  void copy_up_to(std::size_t end) {
    for (; n_ranges_ < prompt_.literals.size() && prompt_.literals[n_ranges_].begin < end;
         ++n_ranges_) {
      add_literal(prompt_.literals[n_ranges_], out_.text.size() - from_);
    }
    out_.text.append(prompt_.text, from_, end - from_);
    from_ = end;
  }

  // `literals`: the parts of the calls that are plain text.
  void put(const SpelledCalls& calls, const std::vector<TextRange>& literals, std::size_t behind) {
    for (const TextRange& range : literals) add_literal(range, out_.text.size());
    out_.text += calls.text;
    from_ = behind;
  }

  ChatPrompt take() {
    copy_up_to(prompt_.text.size());
    return std::move(out_);
  }

 private:
  // std::size_t sums wrap around correctly if a placeholder was longer than its calls.
  void add_literal(const TextRange& range, std::size_t shift) {
    out_.literals.push_back({range.begin + shift, range.end + shift});
  }

  const ChatPrompt& prompt_;
  ChatPrompt out_;
  std::size_t from_ = 0;
  std::size_t n_ranges_ = 0;
};

// The calls for the placeholder that begins at `at`, and its end.
struct FoundPlace {
  std::size_t calls = 0;
  std::size_t end = 0;
};
std::optional<FoundPlace> place_at(const std::string& text, std::size_t at,
                                   const PlacedCalls& placed) {
  const std::size_t first = at + placed.sign.size();
  const std::size_t last = text.find(placed.sign, first);
  if (last == std::string::npos) return std::nullopt;
  FoundPlace found{.end = last + placed.sign.size()};
  const char* const end = text.data() + last;
  const auto [stop, error] = std::from_chars(text.data() + first, end, found.calls);
  if (error != std::errc() || stop != end || found.calls >= placed.calls.size()) {
    return std::nullopt;
  }
  return found;
}

// Special tokens that occur in calls but are not markers.
std::vector<TextRange> literals_of(const SpelledCalls& calls, const Tokenizer& tokenizer) {
  std::vector<TextRange> literals = tokenizer.added_tokens_in(calls.text);
  std::erase_if(literals, [&](const TextRange& range) {
    return std::any_of(calls.markers.begin(), calls.markers.end(), [&](const TextRange& each) {
      return each.begin == range.begin && each.end == range.end;
    });
  });
  return literals;
}

}  // namespace

HistoryForm find_history_form(const ChatTemplate& chat_template, const Tokenizer* tokenizer) {
  const Probe probe(chat_template, tokenizer);
  HistoryForm form;
  try_tools(probe, form);
  try_calls(probe, form);
  try_results(probe, form);
  try_reasoning(probe, form);
  return form;
}

FittedMessages fitted(Json messages, const Json& tools, const Json& variables,
                      const HistoryForm& form, const ReplyFormat& format) {
  Fitting fitting(form, format, dumped(messages) + dumped(tools) + dumped(variables));
  Turns turns(form);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    turns.note_calls(messages[i]);
    if (text_of(messages[i], "role") == "assistant") {
      fitting.fit(messages[i], fmt::format("messages[{}]", i));
    }
    turns.add(std::move(messages[i]));
  }
  messages = turns.take();
  if (form.tools_in_system && !tools.empty()) put_into_system(tools, messages);
  return {std::move(messages), fitting.take_placed()};
}

void put_calls(const PlacedCalls& placed, const Tokenizer* tokenizer, MessageGuard guard,
               ChatPrompt& prompt) {
  if (placed.calls.empty()) return;
  PromptWriter writer(prompt);
  std::size_t at = 0;
  while ((at = prompt.text.find(placed.sign, at)) != std::string::npos) {
    const std::optional<FoundPlace> found = place_at(prompt.text, at, placed);
    if (!found) {
      at += placed.sign.size();
      continue;
    }
    const SpelledCalls& calls = placed.calls[found->calls];
    writer.copy_up_to(at);
    std::vector<TextRange> literals;
    if (guard != MessageGuard::none) literals = literals_of(calls, *tokenizer);
    writer.put(calls, literals, found->end);
    at = found->end;
  }
  prompt = writer.take();
}

}  // namespace outrider::server
