// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_teacher_forced.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/state_line.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "eval/along_texts/forced_run.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::cli {

void add_teacher_forced_flags(CLI::App& app, TeacherForcedFlags& flags) {
  constexpr const char* kGroup = "Rules along given texts";
  app.add_flag(
         "--teacher-forced", flags.chosen,
         "Compare rules along --text or a task's references. One pass of both models: what every "
         "rule would emit, how often it would reject a draft, and how well it predicts the text")
      ->group(kGroup);
  add_filled_texts(app, "--text", flags.text, "FILE ...", "a path",
                   "Text files (with --perplexity one)")
      ->group(kGroup);
  add_filled_text(app, "--separator", flags.separator, "TEXT", "a text",
                  "What stands between the documents of a file (default: a file is one document)")
      ->group(kGroup);
  add_integer(app, "--texts", flags.texts, 1, "The first N documents alone (default: all)")
      ->group(kGroup);
  add_integer(app, "--window", flags.window, 2,
              "Tokens that a model sees at a time (default: the shorter of the two contexts; with "
              "--perplexity 512)")
      ->group(kGroup);
}

namespace {

std::vector<eval::Passage> passages_of(const TeacherForcedFlags& flags) {
  if (flags.text.empty()) {
    throw UsageError("read flags", "--text", "at least one file, or a task", "none");
  }
  const std::vector<std::filesystem::path> files(flags.text.begin(), flags.text.end());
  std::vector<eval::Passage> passages;
  for (std::string& text : eval::read_documents(files, flags.separator, flags.texts)) {
    passages.push_back({.text = std::move(text)});
  }
  return passages;
}

std::vector<eval::Passage> passages_of(const PreparedTask& prepared) {
  std::vector<eval::Passage> passages;
  for (const eval::Question& question : prepared.set.questions) {
    if (question.references.empty()) {
      throw UsageError("measure rules", prepared.task.name, "a task with references",
                       "one without");
    }
    eval::Passage passage{.given = question.prompt, .text = question.references.front()};
    // An answer begins a new word.
    constexpr const char* kBlanks = " \t\n";
    if (passage.given.find_last_of(kBlanks) + 1 != passage.given.size())
      passage.text.insert(0, " ");
    passages.push_back(std::move(passage));
  }
  return passages;
}

std::string state_of(const eval::ForcedProgress& done) {
  std::string state = fmt::format("{} of {} texts", done.n_texts, done.n_all_texts);
  if (done.n_all_tokens > 0) {
    state += fmt::format(", {} of {} tokens of the next", done.n_tokens, done.n_all_tokens);
  }
  return state;
}

}  // namespace

int run_teacher_forced(const CLI::App& app, const ModelFlags& model_flags, const GridFlags& grid,
                       const TaskFlags& task, const TeacherForcedFlags& flags,
                       const ReportWhere& where) {
  std::optional<PreparedTask> prepared;
  if (!task.task.empty()) {
    if (!flags.text.empty()) throw UsageError("read flags", "--text", "texts or a task", "both");
    prepared = prepare_task(app, task);
  }
  eval::ForcedRequest request{
      .passages = prepared ? passages_of(*prepared) : passages_of(flags),
      .sources = prepared ? task.data : flags.text,
      .window = flags.window,
      .options = {.rules = rules_of(grid),
                  .samplings = samplings_of(grid),
                  .lengths = lengths_of(grid),
                  .n_threads = model_flags.options.threads},
  };
  eval::check_forced(request.options);
  const SpeculationOptions speculation = speculation_of(model_flags);
  if (speculation.drafter == "none") {
    throw UsageError("read flags", "--draft", "a drafter's model", "none");
  }

  // Checks the output folder before the measurement.
  if (!where.directory.empty()) eval::make_report_folder(where.directory);

  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  check_encoder_prompt(task, *model);
  StateLine state;
  auto measured =
      eval::run_teacher_forced(*model, speculation, request, [&](const eval::ForcedProgress& done) {
        interrupt.throw_if_raised();
        state.show(state_of(done));
      });
  measured.run.target = model_flags.model;
  // Prints the table first, in case the folder cannot be written any more.
  Output output;
  output.write(where.json
                   ? eval::json_text(eval::forced_json(measured.rows, measured.run), 1) + "\n"
                   : eval::forced_table(measured.rows, measured.run.lengths));
  output.check();
  std::vector<std::string> undrawn;
  if (!where.directory.empty()) {
    undrawn =
        eval::write_forced_report(measured.rows, measured.run, where.directory, where.picture);
  }
  for (const std::string& problem : undrawn) fmt::print(stderr, "outrider: {}\n", problem);
  // Unreadable items were reported and left out.
  return prepared && !prepared->set.problems.empty() ? kExitError : 0;
}

}  // namespace outrider::cli
