// outrider eval: how good a model's answers are, and what they cost.
#include <memory>

#include "commands.h"
#include "eval_task.h"
#include "flag_values.h"
#include "model_flags.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  TaskFlags task;
  TaskOutput output;
};

}  // namespace

CLI::App* add_eval(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("eval", "Measure the quality of answers, and their cost")
                      ->group("Commands");
  const auto flags = std::make_shared<EvalFlags>();
  add_model_flags(*app, flags->model);
  app->get_option("--model")->required(false);  // --list needs none
  add_task_flags(*app, flags->task);

  constexpr const char* kOutput = "Output (the summary goes to standard output)";
  add_path(*app, "-o,--out", flags->output.records, "FILE",
           "Keep a record of each item, JSONL; a run that finds its own records goes on with them")
      ->group(kOutput);
  app->add_flag("--json", flags->output.json, "The summary as one JSON object")->group(kOutput);
  app->footer(
      "Examples:\n"
      "  outrider eval --list\n"
      "  outrider eval --task gsm8k --data test.jsonl --model SmolLM2-1.7B --out gsm8k.jsonl\n"
      "  outrider eval --task multi30k-en-de --data test.en test.de --model LARGE --draft SMALL "
      "\\\n"
      "      --rule token-v3:alpha=0.3 --limit 200 --json\n"
      "  outrider eval --task humaneval --data HumanEval.jsonl --model LARGE --temperature 0.8 \\\n"
      "      --samples 10\n");

  run_command = [flags, app] {
    if (flags->task.list) return list_tasks();
    for (const char* needed : {"--model", "--task", "--data"}) {
      if (app->get_option(needed)->count() == 0) {
        throw UsageError("read flags", "eval", needed, "none (see outrider eval --help)");
      }
    }
    return run_task(*app, flags->model, flags->task, flags->output);
  };
  return app;
}

}  // namespace outrider::cli
