// SPDX-License-Identifier: Apache-2.0
// outrider eval: the quality and cost of a model's answers.
#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/commands.h"
#include "apps/evaluation/eval_frontier.h"
#include "apps/evaluation/eval_grid_flags.h"
#include "apps/evaluation/eval_perplexity.h"
#include "apps/evaluation/eval_task.h"
#include "apps/evaluation/eval_teacher_forced.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/verdict_log_flags.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct EvalFlags {
  ModelFlags model;
  TaskFlags task;
  TaskOutput output;
  TeacherForcedFlags teacher_forced;
  PerplexityFlags perplexity;
  FrontierFlags frontier;
  GridFlags grid;
  std::string picture = "svg";
};

using Names = std::set<std::string>;

// Flags used by some measurements only.
const Names kText = {"--text", "--separator", "--texts", "--window"};
const Names kPerplexity = {"--perplexity", "--tokens",  "--text",    "--window",
                           "--json",       "--model",   "--weights", "--kv",
                           "--kv-memory",  "--threads", "--experts", "--experts-memory",
                           "--device"};
const Names kQuestions = {"--task", "--data", "--examples", "--limit", "--encoder-prompt"};
const Names kGrid = {"--rules",  "--alphas",  "--temperatures", "--top-ps",
                     "--top-ks", "--lengths", "--plot"};
const Names kSingleSetting = {"--rule", "--tree", "--temperature", "--top-k", "--top-p"};
const Names kVerdictLog = {"--verdict-log", "--verdict-log-size", "--verdict-log-top"};
const Names kPair = {"--model",          "--weights", "--kv",      "--kv-memory", "--experts",
                     "--experts-memory", "--threads", "--drafter", "--draft",     "--device"};

// Refuses flags that the chosen measurement does not use.
template <class IsKnown>
void refuse_others(const CLI::App& app, const std::string& way, IsKnown&& is_known) {
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->count() == 0 || is_known(name)) continue;
    throw UsageError("read flags", name, "no such flag " + way, name);
  }
}

void require(const CLI::App& app, std::initializer_list<const char*> names) {
  for (const char* needed : names) {
    if (app.get_option(needed)->count() > 0) continue;
    throw UsageError("read flags", "eval", needed, "none (see outrider eval --help)");
  }
}

}  // namespace

CLI::App* add_eval(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("eval", "Measure the quality of answers, and their cost")
                      ->group("Commands");
  const auto flags = std::make_shared<EvalFlags>();
  add_model_flags(*app, flags->model);
  add_device_flag(*app, flags->model);
  app->get_option("--model")->required(false);  // --list needs none
  add_task_flags(*app, flags->task);

  add_teacher_forced_flags(*app, flags->teacher_forced);
  add_perplexity_flags(*app, flags->perplexity);
  add_frontier_flags(*app, flags->frontier);
  add_grid_flags(*app, flags->grid, "Settings of --teacher-forced and --frontier");

  constexpr const char* kOutput = "Output (the summary goes to standard output)";
  add_path(
      *app, "-o,--out", flags->output.records, "FILE",
      "Where to: records of items (JSONL), or a folder. A run that finds its own records goes on "
      "with them; --teacher-forced and --frontier write CSV, JSON and pictures into a folder")
      ->group(kOutput);
  app->add_flag("--json", flags->output.json, "The summary, or the tasks of --list, as JSON")
      ->group(kOutput);
  add_choice(*app, "--plot", flags->picture, {"svg", "png"}, "Pictures' format (default: svg)")
      ->group(kOutput);
  show_usual(*app, {"--task", "--data", "--list", "--limit", "--chat", "--teacher-forced", "--text",
                    "--perplexity", "--frontier", "--rules", "--out", "--json"});
  app->footer(
      "Examples:\n"
      "  outrider eval --task gsm8k --data test.jsonl --model SmolLM2-1.7B --out gsm8k.jsonl\n"
      "  outrider eval --teacher-forced --model LARGE --draft SMALL --text held-out.txt --out "
      "curves\n"
      "  outrider eval --perplexity --model model.gguf --text held-out.txt --tokens 32768\n"
      "  outrider eval --frontier --task multi30k-en-de --data test.en test.de --model LARGE \\\n"
      "      --draft SMALL --rules exact,token-v3,lossy --out frontier\n");

  run_command = [flags, app] {
    if (flags->task.list) {
      refuse_others(*app, "with --list",
                    [](const std::string& name) { return name == "--list" || name == "--json"; });
      return list_tasks(flags->output.json);
    }
    const ReportWhere where{
        .directory = flags->output.records, .picture = flags->picture, .json = flags->output.json};
    if (flags->teacher_forced.chosen) {
      const bool on_task = !flags->task.task.empty();
      const std::string way = on_task ? "with --teacher-forced --task" : "with --teacher-forced";
      refuse_others(*app, way, [on_task](const std::string& name) {
        return name == "--teacher-forced" || name == "--out" || name == "--json" ||
               name == "--text" || name == "--window" ||
               (on_task ? kQuestions : kText).contains(name) || kGrid.contains(name) ||
               kPair.contains(name);
      });
      require(*app, {"--model"});
      if (on_task) require(*app, {"--data"});
      return run_teacher_forced(*app, flags->model, flags->grid, flags->task, flags->teacher_forced,
                                where);
    }
    if (flags->perplexity.chosen) {
      refuse_others(*app, "with --perplexity",
                    [](const std::string& name) { return kPerplexity.contains(name); });
      require(*app, {"--model", "--text"});
      return run_perplexity(flags->model, flags->perplexity, flags->teacher_forced.text,
                            flags->teacher_forced.window, where.json);
    }
    if (flags->frontier.chosen) {
      refuse_others(*app, "with --frontier", [](const std::string& name) {
        return !kText.contains(name) && name != "--tokens" && !kSingleSetting.contains(name) &&
               !kVerdictLog.contains(name);
      });
      require(*app, {"--model", "--task", "--data"});
      return run_frontier(*app, flags->model, flags->grid, flags->task, flags->frontier, where);
    }
    refuse_others(*app, "without --teacher-forced, --perplexity or --frontier",
                  [](const std::string& name) {
                    return !kText.contains(name) && !kGrid.contains(name) && name != "--cascades" &&
                           name != "--timed" && name != "--tokens";
                  });
    require(*app, {"--model", "--task", "--data"});
    check_verdict_log_flags(flags->task.verdict_log, *app);
    return run_task(*app, flags->model, flags->task, flags->output);
  };
  return app;
}

}  // namespace outrider::cli
