#include "server/history_form.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "outrider/error.h"
#include "server/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

// Words that no template spells. The identifier is one that Mistral's templates take.
constexpr const char* kName = "outrider_tool";
constexpr const char* kKey = "outrider_key";
constexpr const char* kValue = "outrider_value";
constexpr const char* kResult = "outrider_result";
constexpr const char* kThought = "outrider_thought";
constexpr const char* kId = "outrider1";

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

// The members of a message that calls.
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

Json result(const std::string& role) {
  return {{"role", role}, {"content", kResult}, {"name", kName}, {"tool_call_id", kId}};
}

class Probe {
 public:
  Probe(const ChatTemplate& chat_template, const Tokenizer* tokenizer)
      : template_(chat_template), tokenizer_(tokenizer) {}

  // What the template makes of the messages; "" where it refuses them.
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

// Arguments, and neither an object as Python prints it nor a JSON text within another.
bool shows_call(std::string_view prompt) {
  return contains(prompt, kKey) && contains(prompt, kValue) &&
         !contains(prompt, "{'outrider_key'") && !contains(prompt, "\\\"outrider_key");
}

void try_calls(const Probe& probe, HistoryForm& form) {
  for (const bool null_content : {false, true}) {
    for (const bool as_text : {false, true}) {
      // Some templates show calls only in front of what comes of them, some only without it.
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
    return;
  }
}

// Some templates show the reasoning of calls that an answer is still to come to, some that of
// answers.
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

// A member that is a text; "" where there is none.
std::string text_of(const Json& object, const std::string& member) {
  const auto found = object.find(member);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// The functions alone, without what OpenAI's form has around them.
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

// An object, or what a model made up in the place of one.
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

// Words of messages, fitted one by one.
class Fitting {
 public:
  Fitting(const HistoryForm& form, const ReplyFormat& format, const Json& messages)
      : form_(form), format_(format), sign_(free_sign(dumped(messages))) {}

  void fit(Json& message) {
    fit_reasoning(message);
    if (has_calls(message)) fit_calls(message);
  }
  std::vector<PlacedCalls> take_placed() { return std::move(placed_); }

 private:
  // A noncharacter that no message holds (of U+FDD0 to U+FDEF, from the end on: the guard of
  // messages takes them from the beginning on); "" if they hold all.
  static std::string free_sign(std::string_view messages) {
    constexpr int kSigns = 32;
    for (int i = kSigns; i-- > 0;) {
      const std::string sign = {'\xEF', '\xB7', static_cast<char>(0x90 + i)};
      if (!contains(messages, sign)) return sign;
    }
    return "";
  }

  static bool has_calls(const Json& message) {
    const auto calls = message.find("tool_calls");
    return calls != message.end() && calls->is_array() && !calls->empty();
  }

  // A place for the calls into the content, behind what it says. They stay where they are if one of
  // them has no arguments that could be spelled.
  void place_calls(Json& message) {
    std::vector<SpelledCall> calls;
    for (const Json& each : message["tool_calls"]) {
      const Json& function = each["function"];
      Json arguments = arguments_as_object(function.value("arguments", Json::object()));
      if (!arguments.is_object()) return;
      calls.push_back({text_of(function, "name"), std::move(arguments)});
    }
    std::optional<SpelledCalls> spelled;
    try {
      spelled = spelled_calls(format_, calls);
    } catch (const Error&) {  // a call without a name
    }
    if (!spelled || sign_.empty()) return;
    std::string place = sign_ + std::to_string(placed_.size()) + sign_;
    message["content"] = text_of(message, "content") + place;
    message.erase("tool_calls");
    placed_.push_back({std::move(place), *std::move(spelled)});
  }

  void fit_calls(Json& message) {
    // A template that wants null as the content of calls leaves them out beside any other.
    const bool says = !text_of(message, "content").empty();
    if (form_.calls_in_content || (form_.null_content && says)) place_calls(message);
    if (!has_calls(message)) return;
    for (Json& each : message["tool_calls"]) {
      Json& function = each["function"];
      const auto arguments = function.find("arguments");
      if (arguments == function.end()) continue;
      *arguments =
          form_.arguments_as_text ? arguments_as_text(*arguments) : arguments_as_object(*arguments);
    }
    if (form_.null_content && !says) message["content"] = nullptr;
  }

  // Clients call it `reasoning_content` (as the server does) or `reasoning`.
  void fit_reasoning(Json& message) {
    for (const char* const member : {"reasoning_content", "reasoning"}) {
      const auto found = message.find(member);
      if (found == message.end() || !found->is_string() || message.contains(form_.reasoning_member))
        continue;
      Json reasoning = std::move(*found);
      message.erase(member);
      message[form_.reasoning_member] = std::move(reasoning);
    }
    // gpt-oss' template refuses a message that thinks, speaks and calls: what it says is thought.
    if (format_.channels.empty() || !has_calls(message)) return;
    const std::string thought = text_of(message, form_.reasoning_member);
    const std::string said = text_of(message, "content");
    if (thought.empty() || said.empty()) return;
    message[form_.reasoning_member] = thought + "\n\n" + said;
    message["content"] = "";
  }

  const HistoryForm& form_;
  const ReplyFormat& format_;
  std::string sign_;
  std::vector<PlacedCalls> placed_;
};

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

FittedMessages fitted(Json messages, const Json& tools, const HistoryForm& form,
                      const ReplyFormat& format) {
  Fitting fitting(form, format, messages);
  for (Json& message : messages) {
    const std::string role = text_of(message, "role");
    if (role == "tool") message["role"] = form.result_role;
    if (role == "assistant") fitting.fit(message);
  }
  if (form.tools_in_system && !tools.empty()) put_into_system(tools, messages);
  return {std::move(messages), fitting.take_placed()};
}

void put_calls(const std::vector<PlacedCalls>& placed, const Tokenizer* tokenizer,
               MessageGuard guard, ChatPrompt& prompt) {
  for (const auto& [place, calls] : placed) {
    for (std::size_t at = 0; (at = prompt.text.find(place, at)) != std::string::npos;) {
      prompt.text.replace(at, place.size(), calls.text);
      const auto behind = std::find_if(prompt.literals.begin(), prompt.literals.end(),
                                       [at](const TextRange& range) { return range.begin >= at; });
      for (auto range = behind; range != prompt.literals.end(); ++range) {
        range->begin += calls.text.size() - place.size();
        range->end += calls.text.size() - place.size();
      }
      std::vector<TextRange> literals;
      if (guard != MessageGuard::none) literals = tokenizer->added_tokens_in(calls.text);
      std::erase_if(literals, [&](const TextRange& range) {
        return std::any_of(calls.markers.begin(), calls.markers.end(), [&](const TextRange& each) {
          return each.begin == range.begin && each.end == range.end;
        });
      });
      for (TextRange& range : literals) {
        range.begin += at;
        range.end += at;
      }
      prompt.literals.insert(behind, literals.begin(), literals.end());
      at += calls.text.size();
    }
  }
}

}  // namespace outrider::server
