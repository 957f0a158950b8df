// SPDX-License-Identifier: Apache-2.0
// outrider generate: one prompt, one continuation.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/flags/grammar_flags.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/flags/trace_flags.h"
#include "apps/flags/verdict_log_flags.h"
#include "apps/generate/chat_prompt.h"
#include "apps/generate/token_printer.h"
#include "apps/logits_file.h"
#include "apps/profile_file.h"
#include "apps/run_on_ranks.h"
#include "outrider/chat.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

struct GenerateFlags {
  ModelFlags model;
  VerdictLogFlags verdict_log;
  GenerateOptions options;
  std::string prompt;
  std::string prompt_file;
  bool has_prompt_file = false;
  std::string encoder_prompt;
  bool has_encoder_prompt = false;
  bool raw = false;
  bool chat = false;
  ConversationFlags conversation;
  GrammarFlags grammar;
  bool json = false;
  std::string logits;
  std::string trace;
  bool show_draft = false;
  std::string colour = "auto";
};

std::string to_json(const GenerateResult& result, RuleScope scope) {
  const GenerateStatistics& statistics = result.statistics;
  nlohmann::ordered_json stats;
  stats["target_passes"] = statistics.target_passes;
  stats["drafter_passes"] = statistics.drafter_passes;
  stats["drafted"] = statistics.drafted;
  stats["accepted"] = statistics.accepted;
  stats["emitted"] = statistics.emitted;
  stats["tau"] = statistics.tau();
  stats["acceptance_rate"] = statistics.acceptance_rate();
  stats["rule_kl"] = statistics.rule_kl;  // infinity, which JSON lacks, becomes null
  stats["rule_tv"] = statistics.rule_tv;
  stats["deferral_rate"] = statistics.deferral_rate;
  stats["prefill_seconds"] = statistics.prefill_seconds;
  stats["decode_seconds"] = statistics.decode_seconds;
  stats["tokens_per_second"] = statistics.tokens_per_second();
  stats["draft_seconds"] = statistics.draft_seconds;
  stats["verify_seconds"] = statistics.verify_seconds;

  nlohmann::ordered_json object;
  object["text"] = result.text;
  object["ids"] = result.ids;
  object["finish_reason"] = name_of(result.finish_reason);
  object["stats"] = std::move(stats);
  object["rule_scope"] = scope == RuleScope::prefix ? "prefix" : "round";
  object["accepted_per_round"] = result.accepted_per_round;
  // The text should be valid UTF-8; if it is not, U+FFFD is better than no result.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

GenerateResult generate(Generator& generator, const Model& model, const GenerateFlags& flags,
                        const GenerateOptions& options, const std::string& text) {
  if (flags.has_encoder_prompt) {
    const Tokenizer& tokenizer = model.tokenizer();
    const GenerateRequest request{
        .prompt = tokenizer.encode(text, false),
        .options = options,
        .encoder_prompt = tokenizer.encode(flags.encoder_prompt, options.add_special)};
    return std::move(generator.generate({&request, 1}).front());
  }
  if (!flags.chat) return generator.generate(text, options);
  const ChatTemplate chat_template = chat_template_of(model.tokenizer(), flags.conversation);
  std::vector<ChatMessage> messages;
  if (flags.conversation.system) messages.push_back({"system", *flags.conversation.system});
  messages.push_back({"user", text});
  const GenerateRequest request =
      chat_request(chat_template, model.tokenizer(), messages, flags.conversation, options);
  return std::move(generator.generate({&request, 1}).front());
}

// The files that are read.
std::vector<std::filesystem::path> files_of(const GenerateFlags& flags) {
  std::vector<std::filesystem::path> files;
  add_files_of_model(flags.model.model, files);
  add_files_of_model(flags.model.draft_path, files);
  for (const std::string& file : {flags.grammar.grammar, flags.grammar.json_schema}) {
    if (!file.empty()) files.emplace_back(file);
  }
  if (flags.has_prompt_file) files.emplace_back(flags.prompt_file);
  return files;
}

int run(const GenerateFlags& flags) {
  // All errors in flags are reported before the model is loaded.
  const std::string text = flags.has_prompt_file ? read_text(flags.prompt_file) : flags.prompt;
  if (!flags.has_prompt_file) require_text(text, "--prompt");
  require_text(flags.encoder_prompt, "--encoder-prompt");
  const std::shared_ptr<const Grammar> grammar = read_grammar(flags.grammar);
  std::optional<LogitsFile> logits_file;
  if (!flags.logits.empty()) {
    require_not_read(flags.logits, files_of(flags));
    logits_file.emplace(flags.logits);
  }
  if (!flags.trace.empty()) require_not_read(flags.trace, files_of(flags));
  ProgramTrace trace(flags.trace, flags.model);

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(flags.model, interrupt);
  if (flags.has_encoder_prompt && model->summary().n_encoder_layers == 0) {
    throw UsageError("read flags", "--encoder-prompt", "an encoder-decoder (T5)",
                     fmt::format("{}, a decoder", model->summary().architecture));
  }
  Generator generator = make_generator(model, flags.model, interrupt);
  generator.observe_rounds(trace.observer(flags.model.model));
  update_drafter(generator);
  const ProfileFile profile(flags.model);
  profile.prepare(generator);
  ProgramLog verdict_log(flags.verdict_log, *model);

  Output output;
  const TokenStyle style = choose_style(flags.show_draft, flags.colour);
  TokenPrinter printer(style, output, interrupt);
  GenerateOptions options = flags.options;
  options.grammar = grammar;
  options.keep_logits = logits_file.has_value();
  options.cancel = interrupt.flag();
  options.verdict_log = verdict_log.log();
  if (!flags.json) {
    // The legend comes with the first token, so that an error before it remains a single line.
    options.on_token = [print_token = printer.callback(), style,
                        legend_is_due = flags.show_draft](const TokenEvent& event) mutable {
      if (std::exchange(legend_is_due, false)) fmt::print(stderr, "{}\n", legend(style));
      print_token(event);
    };
  }
  const GenerateResult result = generate(generator, *model, flags, options, text);
  verdict_log.warn_of_failure();
  profile.save(generator);
  trace.warn_of_failure();

  // After a full disk no result may look complete: --json's object is printed once the rows are
  // written. By then a text has been streamed.
  if (flags.json) {
    if (logits_file) logits_file->write(result.logits);
    output.write(to_json(result, generator.rule_scope()));
    output.check();
  } else {
    printer.finish(std::string_view(result.text).substr(printer.n_bytes()));
    output.check();
    if (logits_file) logits_file->write(result.logits);
  }
  if (logits_file) logits_file->commit();
  if (!flags.json && was_cut_off_by_context(result, options)) {
    fmt::print(stderr, "{}\n", kCutOffByContext);
  }
  if (!flags.json && is_terminal(STDERR_FILENO)) {
    const bool speculative = speculation_of(flags.model).drafter != "none";
    fmt::print(stderr, "{}\n", summary_line(result, speculative));
  }
  return interrupt.raised() ? kExitInterrupted : 0;
}

}  // namespace

CLI::App* add_generate(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("generate", "Continue a prompt")->group("Commands");
  const auto flags = std::make_shared<GenerateFlags>();
  constexpr const char* kPrompt = "Prompt (one of the two)";
  CLI::Option* prompt =
      add_text(*app, "-p,--prompt", flags->prompt, "TEXT", "The text to continue")->group(kPrompt);
  CLI::Option* prompt_file = add_path(*app, "-f,--prompt-file", flags->prompt_file, "FILE",
                                      "A file with that text (UTF-8); - is standard input")
                                 ->group(kPrompt)
                                 ->excludes(prompt);
  CLI::Option* encoder_prompt =
      add_filled_text(
          *app, "--encoder-prompt", flags->encoder_prompt, "TEXT", "a text",
          "The text that the encoder of an encoder-decoder reads; the prompt, which may be left "
          "out, then begins the answer (without this flag the encoder reads the prompt)")
          ->group(kPrompt);
  CLI::Option* raw =
      app->add_flag("--raw", flags->raw, "The prompt is the text's beginning (default)")
          ->group(kPrompt);
  CLI::Option* chat = app->add_flag("--chat", flags->chat,
                                    "The prompt is a message; the model's chat template wraps it")
                          ->group(kPrompt)
                          ->excludes(raw)
                          ->excludes(encoder_prompt);
  add_conversation_flags(*app, flags->conversation, "Conversation (with --chat)", chat);

  add_model_flags(*app, flags->model);
  add_device_flag(*app, flags->model);
  add_profile_flag(*app, flags->model);
  add_cascade_flag(*app, flags->model);
  add_sampling_flags(*app, flags->options);
  add_model_defaults_flag(*app);
  add_grammar_flags(*app, flags->grammar);
  add_verdict_log_flags(*app, flags->verdict_log);

  constexpr const char* kOutput = "Output (the continuation alone goes to standard output)";
  CLI::Option* json =
      app->add_flag("--json", flags->json,
                    "One JSON object at the end: text, ids, stats and more. Its keys: text, ids, "
                    "finish_reason, stats, rule_scope, accepted_per_round (for each target pass)")
          ->group(kOutput);
  add_path(*app, "--logits", flags->logits, "FILE",
           "Write the target's raw f32 logits behind each id: (ids, vocabulary), little-endian")
      ->group(kOutput);
  add_trace_flag(*app, flags->trace)->group(kOutput);
  app->add_flag("--show-draft", flags->show_draft,
                "Show accepted drafts (green), corrections (yellow), bonus (cyan)")
      ->group(kOutput)
      ->excludes(json);
  add_choice(*app, "--color", flags->colour, {"auto", "always", "never"},
             "Colours of --show-draft; brackets stand in for them (default: auto)")
      ->group(kOutput);
  show_usual(*app,
             {"--prompt", "--prompt-file", "--chat", "--max-tokens", "--temperature", "--top-k",
              "--top-p", "--seed", "--json-schema", "--grammar", "--json", "--show-draft"});
  app->footer(
      "Examples:\n"
      "  outrider generate --model SmolLM2-1.7B-Instruct --prompt \"Once upon a time\"\n"
      "  outrider generate --model SmolLM2-1.7B-Instruct --draft SmolLM2-135M-Instruct \\\n"
      "      --chat --prompt \"Name three rivers.\" --show-draft\n"
      "  outrider generate --model model.gguf --drafter first:grammar,suffix --chat \\\n"
      "      --json-schema person.json --prompt \"Describe Ada Lovelace in JSON.\"\n");

  allow_ranks(*app, flags->model);
  run_command = [flags, app, prompt, prompt_file, encoder_prompt] {
    flags->has_encoder_prompt = encoder_prompt->count() > 0;
    if (prompt->count() + prompt_file->count() == 0 && !flags->has_encoder_prompt) {
      throw UsageError("read flags", "prompt", "--prompt TEXT or --prompt-file FILE", "neither");
    }
    flags->has_prompt_file = prompt_file->count() > 0;
    check_verdict_log_flags(flags->verdict_log, *app);
    read_conversation_flags(flags->conversation);
    take_model_defaults(*app, flags->model.model, flags->options.sampling);
    return run(*flags);
  };
  return app;
}

}  // namespace outrider::cli
