// The assistant's next turn in a conversation: what to generate from and until when, and what the
// generated text says: content, reasoning, calls of tools. docs/tools.md has the models' forms.
//
//   const outrider::ChatTurn turn(tokenizer, {.messages = R"([{"role": "user", ...}])"});
//   const outrider::GenerateRequest request = turn.request(options);
//   outrider::GenerateResult result = std::move(generator.generate({&request, 1}).front());
//   outrider::Reply reply = turn.read(result.text);
#ifndef OUTRIDER_CHAT_TURN_H_
#define OUTRIDER_CHAT_TURN_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/chat.h"
#include "outrider/generate.h"
#include "outrider/tokenizer.h"

namespace outrider {

struct ToolChoice {
  enum class Kind {
    automatic,  // the model may call tools
    none,       // it is not told of any
    required,   // it calls one
    named,      // it calls this one
  };
  Kind kind = Kind::automatic;
  std::string name = {};
};

struct ChatTurnOptions {
  // A JSON array of objects with all that the template reads: role, content, tool_calls.
  std::string messages = {};
  // Its member `tools` is a JSON array of functions, each as OpenAI has it ({"type": "function",
  // "function": {"name", "parameters", ..}}); "": none.
  ChatOptions chat = {};
  MessageGuard guard = MessageGuard::special_tokens;
  ToolChoice tool_choice = {};
  bool parallel_calls = true;  // more than one call in a reply that must call
};

struct ReplyCall {
  std::string id = {};  // few models write one
  std::string name = {};
  std::string arguments = {};  // a JSON object's text
};

struct Reply {
  std::string content = {};
  std::string reasoning = {};
  std::vector<ReplyCall> calls = {};
};

// Immutable; thread-safe.
class ChatTurn {
 public:
  // Throws Error where the model has no chat template, the template refuses the messages, or a text
  // is no JSON of its kind; UsageError for a choice of tools without tools, for a tool by a name
  // that none has, and for tools where the model's template takes none.
  ChatTurn(const Tokenizer& tokenizer, const ChatTurnOptions& options);
  ~ChatTurn();
  ChatTurn(ChatTurn&&) noexcept;
  ChatTurn& operator=(ChatTurn&&) noexcept;

  // The rendered conversation.
  const std::string& prompt() const;
  // `options` with what the turn adds: tokens and texts that end it (neither with ignore_eos), the
  // markers that are shown, and the form of the whole reply. The grammar in `options` is that of an
  // answer without calls. Throws UsageError for one beside a call that must be, and Error for forms
  // that cannot be held to.
  GenerateRequest request(GenerateOptions options) const;
  // What a text of that request says. A call that broke off is content.
  Reply read(std::string_view text) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_CHAT_TURN_H_
