#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "outrider/chat.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kDetect = "detect chat format";
constexpr const char* kRender = "render chat";

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What these families' templates say differently from model to model, read off the template's text.
struct Habits {
  bool trims = false;                 // contents lose the blanks around them
  bool begins_with_bos = false;       // one beginning-of-sequence before everything
  bool bos_before_each_turn = false;  // Llama-2: one before each [INST]
  bool dated_header = false;          // Llama-3.1 and later: a system block that tells dates
  std::string date;                   // the date that block states if it is not told another
  std::string default_system;         // what is put where the conversation has no system message
};

// A string as a template spells it, up to the quote that closes it: \n and \' resolved. nullopt if
// it ends otherwise.
std::optional<std::string> read_literal(std::string_view text, char quote) {
  std::string value;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] == quote) return value;
    if (text[index] == '\\' && index + 1 < text.size()) {
      ++index;
      value += text[index] == 'n' ? '\n' : text[index];
    } else {
      value += text[index];
    }
  }
  return std::nullopt;
}

// The first string literal after `before` (blanks between), if one follows directly.
std::optional<std::string> literal_after(std::string_view text, std::string_view before) {
  const std::size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + before.size());
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  if (text.empty() || (text.front() != '\'' && text.front() != '"')) return std::nullopt;
  return read_literal(text.substr(1), text.front());
}

// ChatML templates with a default system message hold the whole block in one literal:
// '<|im_start|>system\nYou are ...<|im_end|>\n'.
std::string default_chatml_system(std::string_view text) {
  constexpr std::string_view kBegin = "<|im_start|>system\\n";
  constexpr std::string_view kEnd = "<|im_end|>";
  for (std::size_t at = text.find(kBegin); at != std::string_view::npos;
       at = text.find(kBegin, at + 1)) {
    if (at == 0 || (text[at - 1] != '\'' && text[at - 1] != '"')) continue;
    const auto literal = read_literal(text.substr(at + kBegin.size()), text[at - 1]);
    const std::size_t end = literal ? literal->find(kEnd) : std::string::npos;
    if (end != std::string::npos) return literal->substr(0, end);
  }
  return "";
}

Habits read_habits(ChatFormat format, std::string_view text) {
  Habits habits;
  // 'x' | trim, x|trim, x.strip()
  habits.trims = contains(text, "| trim") || contains(text, "|trim") || contains(text, ".strip()");
  habits.begins_with_bos = contains(text, "bos_token");
  switch (format) {
    case ChatFormat::chatml:
      habits.default_system = default_chatml_system(text);
      break;
    case ChatFormat::llama2:
      habits.bos_before_each_turn =
          contains(text, "bos_token + '[INST]") || contains(text, "bos_token+'[INST]");
      if (const auto system = literal_after(text, "set system_message =")) {
        if (!contains(*system, "<<SYS>>")) habits.default_system = *system;
      }
      break;
    case ChatFormat::llama3:
      habits.dated_header = contains(text, "Cutting Knowledge Date: December 2023");
      habits.date = literal_after(text, "set date_string =").value_or("");
      break;
  }
  return habits;
}

// Templates with the markers of a family that say much more than its plain form does: tool calling
// built in unconditionally. Rendering them as plain would feed the model a form it never saw.
bool is_plain(ChatFormat format, std::string_view text) {
  constexpr std::array kToolForms = {"pydantic",     "functionary", "recipient",  "firefunction",
                                     "functions is", "functions |", "functions|", ">>>"};
  if (std::any_of(kToolForms.begin(), kToolForms.end(),
                  [text](const char* mark) { return contains(text, mark); })) {
    return false;
  }
  const Habits habits = read_habits(format, text);
  return !habits.dated_header || !habits.date.empty();
}

// Blanks as Jinja's trim takes them off.
std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string piece_or_nothing(const Tokenizer& tokenizer, TokenId id) {
  return id == kNoToken ? std::string() : std::string(tokenizer.piece(id));
}

void check_roles(std::span<const ChatMessage> messages) {
  if (messages.empty()) throw Error(kRender, "messages", "at least one", "none");
  for (const ChatMessage& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      throw Error(kRender, "role", "system, user or assistant", message.role);
    }
  }
}

std::string render_chatml(const Habits& habits, const std::string& bos,
                          std::span<const ChatMessage> messages) {
  std::string text = habits.begins_with_bos ? bos : "";
  const auto block = [&text](std::string_view role, std::string_view content) {
    text.append("<|im_start|>").append(role).append("\n").append(content).append("<|im_end|>\n");
  };
  if (messages.front().role != "system" && !habits.default_system.empty()) {
    block("system", habits.default_system);
  }
  for (const ChatMessage& message : messages) {
    block(message.role, habits.trims ? trim(message.content) : message.content);
  }
  return text + "<|im_start|>assistant\n";
}

std::string render_llama3(const Habits& habits, const std::string& bos,
                          std::span<const ChatMessage> messages) {
  std::string text = bos;
  const auto header = [](std::string_view role) {
    return std::string("<|start_header_id|>").append(role).append("<|end_header_id|>\n\n");
  };
  const auto content = [&](const ChatMessage& message) {
    return habits.trims ? trim(message.content) : std::string_view(message.content);
  };
  if (habits.dated_header) {
    text += header("system") + "Cutting Knowledge Date: December 2023\nToday Date: " + habits.date +
            "\n\n";
    if (messages.front().role == "system") {
      text += content(messages.front());
      messages = messages.subspan(1);
    }
    text += "<|eot_id|>";
  }
  for (const ChatMessage& message : messages) {
    text.append(header(message.role)).append(content(message)).append("<|eot_id|>");
  }
  return text + header("assistant");
}

std::string render_llama2(const Habits& habits, const std::string& bos, const std::string& eos,
                          std::span<const ChatMessage> messages) {
  std::string system = habits.default_system;
  if (messages.front().role == "system") {
    system = messages.front().content;
    messages = messages.subspan(1);
  }
  const auto content = [&](std::string_view text) { return habits.trims ? trim(text) : text; };
  std::string text;
  for (std::size_t turn = 0; turn < messages.size(); ++turn) {
    const ChatMessage& message = messages[turn];
    // This family has no way to write anything else.
    const char* expected = turn % 2 == 0 ? "user" : "assistant";
    if (message.role != expected) {
      throw Error(kRender, "roles", "user and assistant by turns (after a system message)",
                  message.role);
    }
    if (turn % 2 == 0) {
      const bool with_bos = habits.bos_before_each_turn || (turn == 0 && habits.begins_with_bos);
      if (with_bos) text += bos;
      std::string said = message.content;
      if (turn == 0 && !system.empty()) {
        said.insert(0, "<<SYS>>\n" + std::string(content(system)) + "\n<</SYS>>\n\n");
      }
      text.append("[INST] ").append(content(said)).append(" [/INST]");
    } else {
      text.append(" ").append(content(message.content)).append(" ").append(eos);
    }
  }
  return text;
}

}  // namespace

ChatFormat detect_chat_format(const Tokenizer& tokenizer) {
  constexpr const char* kKnown = "a plain ChatML, Llama-2 or Llama-3 template";
  const std::string& text = tokenizer.chat_template();
  if (text.empty()) throw Error(kDetect, "chat template", kKnown, "none stored with the model");
  std::optional<ChatFormat> format;
  if (contains(text, "<|im_start|>") && contains(text, "<|im_end|>")) {
    format = ChatFormat::chatml;
  } else if (contains(text, "<|start_header_id|>") && contains(text, "<|eot_id|>")) {
    format = ChatFormat::llama3;
  } else if (contains(text, "[INST]") && contains(text, "<<SYS>>")) {
    format = ChatFormat::llama2;
  }
  if (!format || !is_plain(*format, text)) {
    throw Error(kDetect, "chat template", kKnown, "one that begins " + text.substr(0, 60));
  }
  return *format;
}

std::string render_chat(ChatFormat format, const Tokenizer& tokenizer,
                        std::span<const ChatMessage> messages) {
  check_roles(messages);
  const Habits habits = read_habits(format, tokenizer.chat_template());
  const std::string bos = piece_or_nothing(tokenizer, tokenizer.bos_token());
  const std::string eos = piece_or_nothing(tokenizer, tokenizer.eos_token());
  switch (format) {
    case ChatFormat::chatml:
      return render_chatml(habits, bos, messages);
    case ChatFormat::llama2:
      return render_llama2(habits, bos, eos, messages);
    case ChatFormat::llama3:
      break;
  }
  return render_llama3(habits, bos, messages);
}

std::vector<std::string> turn_end_markers(ChatFormat format) {
  switch (format) {
    case ChatFormat::chatml:
      return {"<|im_end|>"};
    case ChatFormat::llama2:
      return {"</s>"};
    case ChatFormat::llama3:
      break;
  }
  return {"<|eot_id|>"};
}

}  // namespace outrider
