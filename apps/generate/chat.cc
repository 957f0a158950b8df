// SPDX-License-Identifier: Apache-2.0
// outrider chat: a conversation with the model in its own chat template.
#include "outrider/chat.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/flags/trace_flags.h"
#include "apps/flags/verdict_log_flags.h"
#include "apps/generate/chat_prompt.h"
#include "apps/generate/message_reader.h"
#include "apps/generate/token_printer.h"
#include "apps/profile_file.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

struct ChatFlags {
  ModelFlags model;
  VerdictLogFlags verdict_log;
  GenerateOptions options;
  ConversationFlags conversation;
  std::string trace;
  bool show_draft = false;
  std::string colour = "auto";
};

// Indented for --help; /help prints it unchanged.
constexpr const char* kHelp =
    "  /system TEXT  set the system message and begin anew (no TEXT: the model's own)\n"
    "  /tool TEXT    what a function returned that the model called (--tools)\n"
    "  /help         this list\n"
    "  /reset        forget the conversation, keep the system message\n"
    "  /exit         leave (so does the end of input, Ctrl-D)\n"
    "  //...         a message that begins with a slash\n"
    "  \"\"\"           begins and ends a message of several lines\n"
    "  Ctrl-C        end the answer being written\n";

// One conversation: interactive at a terminal, otherwise with one message per line of a pipe.
class Conversation {
 public:
  Conversation(const ChatFlags& flags, Interrupt& interrupt)
      : flags_(&flags),
        interrupt_(&interrupt),
        trace_(flags.trace, flags.model),
        model_(load_model(flags.model, interrupt)),
        template_(chat_template_of(model_->tokenizer(), flags.conversation)),
        generator_(make_generator(model_, flags.model, interrupt)),
        profile_(flags.model),
        verdict_log_(flags.verdict_log, *model_),
        style_(choose_style(flags.show_draft, flags.colour)),
        interactive_(is_terminal(STDIN_FILENO)),
        system_(flags.conversation.system) {
    generator_.keep_last_text(true);
    profile_.prepare(generator_);
    generator_.observe_rounds(trace_.observer(flags.model.model));
  }
  // Saves what the drafting profile learnt.
  ~Conversation() { profile_.save(generator_); }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  int run() {
    if (interactive_) notice("/help lists the commands, Ctrl-C ends an answer, Ctrl-D leaves");
    if (flags_->show_draft) notice(legend(style_));
    MessageReader messages;
    Message message;
    const auto show_further_prompt = [this] {
      if (interactive_) show("... ");
    };
    for (;;) {
      interrupt_->reset();
      if (interactive_) show("> ");
      LineStatus status = LineStatus::end;
      try {
        status = messages.next(*interrupt_, show_further_prompt, message);
      } catch (const Error& error) {
        complain(error.what());
      }
      if (status == LineStatus::interrupted) {
        if (!interactive_ || Interrupt::must_end()) return kExitInterrupted;
        show("\n");
        continue;
      }
      if (status == LineStatus::end) {
        if (interactive_) show("\n");
        return status_;
      }
      std::string& text = message.text;
      if (!message.is_block && text.find_first_not_of(" \t") == std::string::npos) continue;
      try {
        require_text(text, "message");
      } catch (const Error& error) {
        complain(error.what());
        continue;
      }
      std::string role = "user";
      if (!message.is_block && text.front() == '/') {
        if (const std::string result = argument_of("/tool", text); !result.empty()) {
          role = "tool";
          text = result;
        } else if (text.substr(0, 2) == "//") {
          text.erase(0, 1);
        } else {
          if (!obey(text)) return status_;
          continue;
        }
      }
      answer(std::move(role), std::move(text));
      output_.check();
      if (interrupt_->raised() && (!interactive_ || Interrupt::must_end())) {
        return kExitInterrupted;
      }
    }
  }

 private:
  static void show(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  }
  static void notice(std::string_view text) { show(fmt::format("{}\n", text)); }

  // What follows a command on its line; nothing for another command.
  static std::string argument_of(std::string_view command, const std::string& line) {
    const std::size_t blank = std::min(line.find_first_of(" \t"), line.size());
    if (line.substr(0, blank) != command) return "";
    const std::size_t begin = line.find_first_not_of(" \t", blank);
    return begin == std::string::npos ? "" : line.substr(begin);
  }

  // Runs a line that begins with a slash; returns false to end the program.
  bool obey(const std::string& line) {
    const std::string command = line.substr(0, line.find_first_of(" \t"));
    const std::string argument = argument_of(command, line);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      show(kHelp);
    } else if (command == "/reset") {
      turns_.clear();
    } else if (command == "/system") {
      system_.reset();
      if (!argument.empty()) system_ = argument;
      turns_.clear();
    } else if (command == "/tool") {
      complain("[chat] /tool: expected what the function returned, got nothing");
    } else {
      complain(
          fmt::format("[chat] {}: expected one of /system, /tool, /reset, /help, /exit, got "
                      "another (// begins a message with a slash)",
                      one_line(command)));
    }
    return true;
  }

  // Reports an error and continues; scripts see it in the exit status.
  void complain(std::string_view message) {
    notice(fmt::format("outrider: {}", message));
    if (!interactive_) status_ = kExitError;
  }

  // The request for the turns from that one on.
  GenerateRequest request(const GenerateOptions& options, std::size_t first_turn) const {
    std::vector<ChatMessage> messages;
    if (system_) messages.push_back({"system", *system_});
    messages.insert(messages.end(), turns_.begin() + static_cast<std::ptrdiff_t>(first_turn),
                    turns_.end());
    return chat_request(template_, model_->tokenizer(), messages, flags_->conversation, options);
  }

  // The request for the conversation so far. Drops the oldest exchanges if they and an answer
  // exceed the context. Throws Error if even the last message alone is too long.
  GenerateRequest fitting_request(const GenerateOptions& options) {
    // Leaves space for an answer of the requested length, but at most half the context.
    const int context = model_->summary().context_length;
    const int room = context - std::min(std::max(options.max_tokens, 1), context / 2);
    GenerateRequest made = request(options, 0);
    std::size_t n_dropped = 0;
    while (static_cast<int>(made.prompt.size()) > room && 2 * n_dropped + 1 < turns_.size()) {
      // Drops a question with its answer, and with the function results between them.
      do ++n_dropped;
      while (2 * n_dropped + 1 < turns_.size() && turns_[2 * n_dropped].role != "user");
      made = request(options, 2 * n_dropped);
    }
    // Nothing is dropped for a message that is refused anyway.
    if (static_cast<int>(made.prompt.size()) >= context) {
      throw Error("chat", "message", fmt::format("fewer tokens than the context of {}", context),
                  fmt::format("{}", made.prompt.size()));
    }
    if (n_dropped > 0) {
      turns_.erase(turns_.begin(), turns_.begin() + static_cast<std::ptrdiff_t>(2 * n_dropped));
      notice(
          fmt::format("(the context of {} tokens is full: the oldest {} forgotten)", context,
                      n_dropped == 1 ? "exchange is" : fmt::format("{} exchanges are", n_dropped)));
    }
    return made;
  }

  void answer(std::string role, std::string message) {
    turns_.push_back({std::move(role), std::move(message)});
    TokenPrinter printer(style_, output_, *interrupt_);
    GenerateOptions options = flags_->options;
    options.on_token = printer.callback();
    options.cancel = interrupt_->flag();
    options.verdict_log = verdict_log_.log();
    update_drafter(generator_);
    GenerateResult result;
    try {
      const GenerateRequest made = fitting_request(options);
      result = std::move(generator_.generate({&made, 1}).front());
    } catch (const UsageError&) {
      throw;  // the flags are wrong, for every message
    } catch (const Error& error) {
      turns_.pop_back();
      complain(error.what());
      return;
    }
    printer.finish(std::string_view(result.text).substr(printer.n_bytes()));
    verdict_log_.warn_of_failure();
    trace_.warn_of_failure();
    if (result.finish_reason == FinishReason::length) {
      notice(was_cut_off_by_context(result, options)
                 ? std::string(kCutOffByContext)
                 : fmt::format("(cut off at --max-tokens {})", options.max_tokens));
    }
    turns_.push_back({"assistant", std::move(result.text)});
  }

  const ChatFlags* flags_;
  Interrupt* interrupt_;
  ProgramTrace trace_;
  std::shared_ptr<const Model> model_;
  ChatTemplate template_;
  Generator generator_;
  ProfileFile profile_;
  ProgramLog verdict_log_;
  TokenStyle style_;
  bool interactive_;
  Output output_;
  std::optional<std::string> system_;
  // alternately user (or tool) and assistant, beginning with the user
  std::vector<ChatMessage> turns_;
  int status_ = 0;
};

}  // namespace

CLI::App* add_chat(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("chat", "Talk with a model, over its own chat template")
                      ->group("Commands");
  const auto flags = std::make_shared<ChatFlags>();
  add_conversation_flags(*app, flags->conversation, "Conversation");
  add_model_flags(*app, flags->model);
  add_device_flag(*app, flags->model);
  add_profile_flag(*app, flags->model);
  add_cascade_flag(*app, flags->model);
  add_sampling_flags(*app, flags->options);
  add_model_defaults_flag(*app);
  add_verdict_log_flags(*app, flags->verdict_log);
  constexpr const char* kOutput =
      "Output (answers go to standard output, all else to standard error)";
  add_trace_flag(*app, flags->trace)->group(kOutput);
  app->add_flag("--show-draft", flags->show_draft,
                "Show accepted drafts (green), corrections (yellow), bonus (cyan)")
      ->group(kOutput);
  add_choice(*app, "--color", flags->colour, {"auto", "always", "never"},
             "Colours of --show-draft; brackets stand in for them (default: auto)")
      ->group(kOutput);
  show_usual(*app, {"--system", "--max-tokens", "--temperature", "--top-k", "--top-p", "--seed",
                    "--show-draft"});
  app->footer(fmt::format(
      "In the conversation:\n{}\n"
      "Examples:\n"
      "  outrider chat --model SmolLM2-1.7B-Instruct --draft SmolLM2-135M-Instruct\n"
      "  outrider chat --model model.gguf --system \"Answer briefly.\" < questions.txt\n",
      kHelp));
  run_command = [flags, app] {
    check_verdict_log_flags(flags->verdict_log, *app);
    read_conversation_flags(flags->conversation);
    take_model_defaults(*app, flags->model.model, flags->options.sampling);
    Interrupt interrupt;
    return Conversation(*flags, interrupt).run();
  };
  return app;
}

}  // namespace outrider::cli
