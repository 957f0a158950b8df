// SPDX-License-Identifier: Apache-2.0
// outrider template: renders a conversation with a chat template.
#include <memory>
#include <string>

#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "outrider/chat.h"
#include "outrider/chat_template.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

struct TemplateFlags {
  std::string model;
  std::string file;
  std::string messages;
  std::string tools;
  std::string context;
  bool no_generation_prompt = false;
};

int print_prompt(const TemplateFlags& flags) {
  ChatOptions options;
  options.add_generation_prompt = !flags.no_generation_prompt;
  if (!flags.tools.empty()) options.tools = read_text(flags.tools);
  const bool has_context = !flags.context.empty();
  const std::string given = read_text(has_context ? flags.context : flags.messages);
  std::shared_ptr<const Tokenizer> tokenizer;
  if (!flags.model.empty()) tokenizer = Tokenizer::load(flags.model);
  const ChatTemplate chat_template = tokenizer ? chat_template_of(*tokenizer, !flags.tools.empty())
                                               : ChatTemplate(read_text(flags.file));
  const std::string variables =
      has_context ? given : chat_variables(tokenizer.get(), given, options);
  Output output;
  output.write(chat_template.render(variables));
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_template(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("template", "Show the prompt that a chat template makes of messages")
          ->group("Commands");
  const auto flags = std::make_shared<TemplateFlags>();
  constexpr const char* kTemplate = "Template (one of the two)";
  CLI::Option* model =
      add_path(*app, "-m,--model", flags->model, "PATH",
               "A model that has one: a Hugging Face directory or a .gguf file; nothing is run")
          ->group(kTemplate);
  CLI::Option* file =
      add_path(*app, "--template", flags->file, "FILE", "A Jinja template by itself")
          ->group(kTemplate)
          ->excludes(model);

  constexpr const char* kInput = "Input (one of the two; - is standard input)";
  CLI::Option* messages =
      add_path(*app, "--messages", flags->messages, "FILE",
               "JSON: a list of objects with role and content, and what else the template reads")
          ->group(kInput);
  CLI::Option* context =
      add_path(*app, "--context", flags->context, "FILE",
               "JSON: an object of all variables; special tokens of the model are not added")
          ->group(kInput)
          ->excludes(messages);

  constexpr const char* kWith = "With --messages";
  add_path(*app, "--tools", flags->tools, "FILE",
           "JSON: a list of functions that the model may call (its template for tools, if it has "
           "one)")
      ->group(kWith)
      ->needs(messages);
  app->add_flag("--no-generation-prompt", flags->no_generation_prompt,
                "Do not begin the assistant's next turn")
      ->group(kWith)
      ->needs(messages);
  app->footer(
      "The prompt is printed byte for byte, without a line end of its own. What the template\n"
      "refuses is an error in its words.\n\n"
      "Examples:\n"
      "  outrider template --model SmolLM2-135M-Instruct --messages messages.json\n"
      "  outrider template --model model.gguf --messages messages.json --tools tools.json\n"
      "  echo '[{\"role\": \"user\", \"content\": \"Hi\"}]' |\n"
      "      outrider template --model model.gguf --messages - --no-generation-prompt\n"
      "  outrider template --template chat_template.jinja --context variables.json\n");

  run_command = [flags, model, file, messages, context] {
    if (model->count() + file->count() == 0) {
      throw UsageError("read flags", "template", "--model PATH or --template FILE", "neither");
    }
    if (messages->count() + context->count() == 0) {
      throw UsageError("read flags", "input", "--messages FILE or --context FILE", "neither");
    }
    return print_prompt(*flags);
  };
  return app;
}

}  // namespace outrider::cli
