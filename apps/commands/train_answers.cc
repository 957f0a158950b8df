// SPDX-License-Identifier: Apache-2.0
// outrider train answers: a target's own answers to prompts, as text for training its heads.
#include "apps/commands/train_answers.h"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/evaluation/item_progress.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/generate/chat_prompt.h"
#include "apps/own_prompts.h"
#include "outrider/batch.h"
#include "outrider/compare_methods.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

constexpr const char* kWriteAnswers = "write answers";
constexpr const char* kOwnSet = "own";

struct AnswerFlags {
  ModelFlags model;
  ConversationFlags conversation;
  GenerateOptions options;
  std::vector<std::string> prompt_files;
  std::string out;
  int own_prompts = 0;
  int batch = 16;
  bool raw = false;
  bool resume = false;
};

// A file with a line per answer; all lines of a conversation are written at once. After a kill or a
// full disk it is truncated to its last complete line.
class AnswerFile {
 public:
  // Throws Error or UsageError if the file exists without `resume`, or holds something else.
  AnswerFile(const std::string& path, bool resume) : path_(path) {
    if (std::filesystem::exists(path)) {
      if (!resume) throw UsageError("read flags", "out", "a new file, or --resume", path);
      read_what_is_there();
    }
    file_.open(path, std::ios::binary | std::ios::app);
    if (!file_) throw Error(kWriteAnswers, path, "a file that can be written", "none");
  }

  bool has(const std::string& conversation) const { return done_.count(conversation) > 0; }
  // False if the file has the prompt, or if it was given before.
  bool take_prompt(const std::string& prompt) { return prompts_.insert(prompt).second; }
  void write(const std::string& lines) {
    file_ << lines << std::flush;
    if (!file_) throw Error(kWriteAnswers, path_, "room for what is written", "none");
  }

 private:
  void read_what_is_there() {
    std::ifstream in(path_, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    std::size_t begin = 0;
    for (std::size_t end; (end = bytes.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const auto line = nlohmann::json::parse(bytes.substr(begin, end - begin), nullptr, false);
      if (!line.is_object() || !line.contains("id") || !line["id"].is_string()) {
        throw Error(kWriteAnswers, path_, "a file of this command", "a line of something else");
      }
      done_.insert(line["id"].get<std::string>());
      if (line.contains("prompt") && line["prompt"].is_string()) {
        prompts_.insert(line["prompt"].get<std::string>());
      }
    }
    in.close();
    if (begin < bytes.size()) std::filesystem::resize_file(path_, begin);
  }

  std::string path_;
  std::ofstream file_;
  std::set<std::string> done_;
  std::set<std::string> prompts_;  // as rendered
};

// One empty prompt for each that the model will write.
PromptSet own_prompts(int n) {
  PromptSet set;
  set.name = kOwnSet;
  for (int i = 0; i < n; ++i) {
    set.prompts.push_back(
        {.set = set.name, .id = std::to_string(i), .category = set.name, .topic = {}, .turns = {}});
  }
  return set;
}

// The conversations of a run: each turn by turn, many in parallel. The model first writes a prompt
// that has no turns.
class AnswerRun {
 public:
  AnswerRun(const AnswerFlags& flags, std::shared_ptr<const Model> model,
            std::vector<ComparedPrompt> prompts, AnswerFile& file, Interrupt& interrupt)
      : flags_(flags),
        model_(std::move(model)),
        prompts_(std::move(prompts)),
        file_(file),
        interrupt_(interrupt),
        speculation_(speculation_of(flags.model)) {
    if (!flags.raw) {
      template_ =
          std::make_unique<ChatTemplate>(chat_template_of(model_->tokenizer(), flags.conversation));
    }
  }

  void run() {
    std::vector<std::string> drafters;
    if (speculation_.drafter != "none") drafters.push_back(speculation_.drafter);
    Batch batch(model_, drafters, speculation_.drafter_options,
                {.max_running = flags_.batch, .max_kept = flags_.batch});
    if (speculation_.adaptive) batch.measure_passes();
    batch_ = &batch;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      if (!file_.has(id_of(i))) open.push_back(i);
    }
    ItemProgress progress(static_cast<int>(prompts_.size()),
                          static_cast<int>(prompts_.size() - open.size()));
    progress_ = &progress;
    talks_.resize(prompts_.size());
    // Few wait at a time, since rendered prompts of a large set would fill the memory.
    std::size_t next = 0;
    while (true) {
      for (; next < open.size() && batch.load().n_waiting == 0; ++next) begin(open[next]);
      if (interrupt_.raised() || !batch.step()) break;
    }
    progress_ = nullptr;
    batch_ = nullptr;
  }

  // The number that could not be answered.
  int n_failed() const { return n_failed_; }
  // The number of the model's own prompts without an end, or that existed before.
  int n_passed_over() const { return n_passed_over_; }

 private:
  struct Talk {
    std::vector<ChatMessage> messages;
    std::string lines;  // of the turns so far
  };

  std::string id_of(std::size_t conversation) const {
    const ComparedPrompt& prompt = prompts_[conversation];
    return fmt::format("{}/{}", prompt.set, prompt.id);
  }

  void begin(std::size_t conversation) {
    Talk& talk = talks_[conversation];
    if (flags_.conversation.system)
      talk.messages.push_back({"system", *flags_.conversation.system});
    if (prompts_[conversation].turns.empty()) {
      write_prompt(conversation);
    } else {
      ask(conversation, 0);
    }
  }

  GenerateOptions options_of(std::size_t conversation) const {
    GenerateOptions options = flags_.options;
    // Each conversation has its own text, whatever runs beside it.
    options.seed += conversation;
    options.cancel = interrupt_.flag();
    return options;
  }

  void write_prompt(std::size_t conversation) {
    try {
      batch_->submit(
          own_prompt_request(*template_, model_->tokenizer(), flags_.conversation,
                             options_of(conversation)),
          speculation_,
          [this, conversation](const GenerateResult& result, const std::exception_ptr& error) {
            if (error) {
              fail(conversation, error);
            } else if (result.finish_reason == FinishReason::cancelled) {
              return;
            } else if (auto prompt = own_prompt_of(result)) {
              prompts_[conversation].turns = {*std::move(prompt)};
              ask(conversation, 0);
            } else {
              pass_over(conversation);
            }
          });
    } catch (const Error&) {
      fail(conversation, std::current_exception());
    }
  }

  void ask(std::size_t conversation, std::size_t turn) {
    Talk& talk = talks_[conversation];
    const std::string& said = prompts_[conversation].turns[turn];
    GenerateOptions options = options_of(conversation);
    try {
      GenerateRequest request;
      if (flags_.raw) {
        request = {.prompt = model_->tokenizer().encode(said, true), .options = options};
      } else {
        talk.messages.push_back({"user", said});
        request = chat_request(*template_, model_->tokenizer(), talk.messages, flags_.conversation,
                               options);
      }
      const std::vector<TokenId> prompt = request.prompt;
      if (prompts_[conversation].set == kOwnSet &&
          !file_.take_prompt(model_->tokenizer().decode(prompt, true))) {
        pass_over(conversation);
        return;
      }
      batch_->submit(std::move(request), speculation_,
                     [this, conversation, turn, prompt](const GenerateResult& result,
                                                        const std::exception_ptr& error) {
                       if (error) {
                         fail(conversation, error);
                       } else {
                         take(conversation, turn, prompt, result);
                       }
                     });
    } catch (const Error&) {
      fail(conversation, std::current_exception());
    }
  }

  void take(std::size_t conversation, std::size_t turn, const std::vector<TokenId>& prompt,
            const GenerateResult& result) {
    if (result.finish_reason == FinishReason::cancelled) return;
    Talk& talk = talks_[conversation];
    nlohmann::ordered_json line = {{"id", id_of(conversation)},
                                   {"prompt", model_->tokenizer().decode(prompt, true)},
                                   {"completion", result.text},
                                   {"prompt_tokens", prompt},
                                   {"completion_tokens", result.ids}};
    talk.lines +=
        line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    talk.messages.push_back({"assistant", result.text});
    const bool has_more = !flags_.raw && turn + 1 < prompts_[conversation].turns.size();
    if (has_more && result.finish_reason != FinishReason::length) {
      ask(conversation, turn + 1);
      return;
    }
    file_.write(talk.lines);
    talk = {};
    progress_->step();
  }

  void pass_over(std::size_t conversation) {
    ++n_passed_over_;
    talks_[conversation] = {};
    progress_->step();
  }

  // If the template or the context refuses one, the others continue.
  void fail(std::size_t conversation, const std::exception_ptr& error) {
    ++n_failed_;
    talks_[conversation] = {};
    try {
      std::rethrow_exception(error);
    } catch (const Error& refused) {
      progress_->complain(
          fmt::format("outrider: {}: {}", one_line(id_of(conversation)), one_line(refused.what())));
    }
    progress_->step();
  }

  const AnswerFlags& flags_;
  std::shared_ptr<const Model> model_;
  std::vector<ComparedPrompt> prompts_;
  AnswerFile& file_;
  Interrupt& interrupt_;
  SpeculationOptions speculation_;
  std::unique_ptr<ChatTemplate> template_;
  std::vector<Talk> talks_;  // by prompt
  Batch* batch_ = nullptr;   // while it runs
  ItemProgress* progress_ = nullptr;
  int n_failed_ = 0;
  int n_passed_over_ = 0;
};

int run_answers(const AnswerFlags& flags) {
  std::vector<PromptSet> sets;
  std::vector<std::filesystem::path> read;
  for (const std::string& file : flags.prompt_files) {
    sets.push_back(read_prompt_set(file));
    read.emplace_back(file);
  }
  if (flags.own_prompts > 0) sets.push_back(own_prompts(flags.own_prompts));
  if (sets.empty()) {
    throw UsageError("read flags", "prompts", "--prompts or --own-prompts", "neither");
  }
  add_files_of_model(flags.model.model, read);
  require_not_read(flags.out, read);
  AnswerFile file(flags.out, flags.resume);
  Interrupt interrupt;
  AnswerRun answers(flags, load_model(flags.model, interrupt), join_prompt_sets(sets), file,
                    interrupt);
  answers.run();
  if (interrupt.raised()) {
    fmt::print(stderr, "outrider: stopped; --resume goes on\n");
    return kExitInterrupted;
  }
  std::string left_out;
  if (answers.n_failed() > 0) left_out = fmt::format(", but for {} prompts", answers.n_failed());
  if (answers.n_passed_over() > 0) {
    left_out += fmt::format(", without {} prompts of its own that had no end or were there before",
                            answers.n_passed_over());
  }
  fmt::print(stderr, "{}: written{}\n", one_line(flags.out), left_out);
  return answers.n_failed() == 0 ? 0 : kExitError;
}

}  // namespace

CLI::App* add_train_answers(CLI::App& train, Run& run_command) {
  CLI::App* app =
      train
          .add_subcommand("answers",
                          "What a target says to prompts: text for its heads to learn from")
          ->group("In this program");
  const auto flags = std::make_shared<AnswerFlags>();
  constexpr const char* kFiles = "Files";
  add_filled_texts(*app, "--prompts", flags->prompt_files, "FILE ...", "a path",
                   "Prompts in Spec-Bench's form (this or --own-prompts). A JSON object a line "
                   "with \"turns\", as MT-bench has them, too")
      ->group(kFiles);
  CLI::Option* own = add_integer(*app, "--own-prompts", flags->own_prompts, 1,
                                 "Have the model write N prompts itself (default: none). Behind "
                                 "its chat template's opening of a user's turn")
                         ->group(kFiles);
  add_path(
      *app, "--out", flags->out, "FILE",
      "Where to (required). A JSON object a line, which --examples of the other commands reads")
      ->group(kFiles)
      ->required();
  app->add_flag("--resume", flags->resume, "Go on with a file that is there, where it was left")
      ->group(kFiles);
  app->add_flag("--raw", flags->raw,
                "Prompts are texts to go on with. Without this flag they are messages, which the "
                "model's chat template wraps")
      ->group(kFiles)
      ->excludes(own);
  add_integer(*app, "--batch", flags->batch, 1, "Texts in one pass (default: 16)")->group(kFiles);
  add_conversation_flags(*app, flags->conversation, "Conversation");
  add_model_flags(*app, flags->model);
  add_sampling_flags(*app, flags->options);
  add_model_defaults_flag(*app);
  show_usual(*app, {"--prompts", "--own-prompts", "--out", "--resume", "--raw", "--batch",
                    "--system", "--max-tokens", "--temperature", "--top-k", "--top-p", "--seed"});
  app->footer(
      "Examples:\n"
      "  outrider train answers --model model.gguf --prompts questions.jsonl --max-tokens 256 \\\n"
      "      --temperature 0.7 --out answers.jsonl\n"
      "  outrider train answers --model model.gguf --own-prompts 2000 --out answers.jsonl\n"
      "  outrider train dspark --target model.gguf --examples answers.jsonl --out head\n");
  run_command = [flags, app] {
    read_conversation_flags(flags->conversation);
    take_model_defaults(*app, flags->model.model, flags->options.sampling);
    return run_answers(*flags);
  };
  return app;
}

}  // namespace outrider::cli
