// outrider eval: how good a model's answers are, and what they cost.
#include <memory>
#include <set>
#include <string>

#include "commands.h"
#include "eval_grid_flags.h"
#include "eval_task.h"
#include "eval_teacher_forced.h"
#include "flag_values.h"
#include "model_flags.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  TaskFlags task;
  TaskOutput output;
  TeacherForcedFlags teacher_forced;
  GridFlags grid;
};

// Flags that a measurement along given texts looks at.
const std::set<std::string> kTeacherForcedFlags = {
    "--model",  "--weights",        "--kv",      "--threads",   "--drafter",
    "--draft",  "--teacher-forced", "--text",    "--separator", "--texts",
    "--window", "--plot",           "--rules",   "--alphas",    "--temperatures",
    "--top-ps", "--top-ks",         "--lengths", "--out",       "--json"};
// And those of them that asking a task does not.
const std::set<std::string> kFrontierFlags = {
    "--text",   "--separator",    "--texts",  "--window", "--plot",   "--rules",
    "--alphas", "--temperatures", "--top-ps", "--top-ks", "--lengths"};

// A flag that the chosen measurement does not look at is a mistake, not to be passed over.
void refuse_others(const CLI::App& app, bool teacher_forced) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0) continue;
    if (teacher_forced && !kTeacherForcedFlags.contains(name)) {
      throw UsageError("read flags", name, "no such flag with --teacher-forced", name);
    }
    if (!teacher_forced && kFrontierFlags.contains(name)) {
      throw UsageError("read flags", name, "--teacher-forced with it", "none");
    }
  }
}

}  // namespace

CLI::App* add_eval(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("eval", "Measure the quality of answers, and their cost")
                      ->group("Commands");
  const auto flags = std::make_shared<EvalFlags>();
  add_model_flags(*app, flags->model);
  app->get_option("--model")->required(false);  // --list needs none
  add_task_flags(*app, flags->task);

  add_teacher_forced_flags(*app, flags->teacher_forced);
  add_grid_flags(*app, flags->grid, "Settings along given texts");

  constexpr const char* kOutput = "Output (the summary goes to standard output)";
  add_path(*app, "-o,--out", flags->output.records, "FILE",
           "Keep a record of each item, JSONL; a run that finds its own records goes on with "
           "them. With --teacher-forced: a folder for CSV, JSON and pictures")
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
      "      --samples 10\n"
      "  outrider eval --teacher-forced --model LARGE --draft SMALL --text held-out.txt \\\n"
      "      --rules exact,chow,diff,token-v3,lossy --lengths 3,5,7 --out frontier\n");

  run_command = [flags, app] {
    if (flags->task.list) return list_tasks();
    const bool teacher_forced = flags->teacher_forced.chosen;
    refuse_others(*app, teacher_forced);
    if (teacher_forced) {
      if (flags->model.model.empty()) throw UsageError("read flags", "eval", "--model", "none");
      return run_teacher_forced(flags->model, flags->grid, flags->teacher_forced,
                                flags->output.records, flags->output.json);
    }
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
