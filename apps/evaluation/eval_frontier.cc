// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_frontier.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/evaluation/item_progress.h"
#include "eval/frontiers/frontier_report.h"
#include "eval/frontiers/frontier_settings.h"
#include "eval/frontiers/sequential_generator.h"
#include "eval/record.h"
#include "eval/report_text.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

namespace fs = std::filesystem;

// A setting as the flags of a single run.
ModelFlags flags_of(const eval::FrontierSetting& setting, ModelFlags flags) {
  if (setting.sequential) return flags;
  flags.speculation.rule = setting.rule.rule;
  flags.speculation.tree = fmt::format("chain:length={}", setting.length);
  return flags;
}

void set_sampling(const SamplingParams& sampling, GenerateOptions& options) {
  options.sampling.temperature = sampling.temperature;
  options.sampling.top_k = sampling.top_k;
  options.sampling.top_p = sampling.top_p;
}

// The inputs of asking a question.
struct Asking {
  std::shared_ptr<const Model> model;
  Generator* plain;
  const eval::Metrics* metrics;
  const Interrupt* interrupt;
};

// Plain decoding's answers with one transform, untimed. They are the same for every setting, so
// each question is asked once; those in the file are not asked again.
class PlainAnswers {
 public:
  PlainAnswers(const fs::path& file, const nlohmann::ordered_json& configuration)
      : file_(file, configuration), answers_(file_.done()) {}

  // Returns nothing if interrupted.
  std::optional<eval::Record> answer(const eval::Question& question, const Asking& asking,
                                     const eval::AskOptions& options) {
    const auto known = answers_.find(question.item.number);
    if (known != answers_.end()) return known->second;
    std::optional<eval::Record> record =
        eval::ask(*asking.plain, *asking.model, question, *asking.metrics, options);
    if (!record) return std::nullopt;
    file_.append(*record);
    answers_.emplace(question.item.number, *record);
    return record;
  }

 private:
  eval::RecordFile file_;
  std::map<int, eval::Record> answers_;
};

// One setting's answers, question by question; those in the files are not asked again.
class SettingRun {
 public:
  SettingRun(const eval::FrontierSetting& setting, const fs::path& records,
             const ModelFlags& model_flags, const TaskFlags& task_flags,
             const PreparedTask& prepared, bool timed)
      : setting_(&setting), flags_(flags_of(setting, model_flags)) {
    const std::string name = eval::name_of(setting);
    auto configuration = configuration_of(flags_, task_flags, prepared);
    if (setting.sequential) configuration["cascade"] = setting.rule.rule;
    answers_.emplace(records / (name + ".jsonl"), configuration);
    if (!timed) return;
    configuration["plain"] = true;
    plains_.emplace(records / (name + ".plain.jsonl"), configuration);
  }

  // In a timed run, this answer and plain decoding's, one right after the other. Returns nothing if
  // interrupted.
  std::optional<eval::FrontierItem> ask_timed(const eval::Question& question, const Asking& asking,
                                              const eval::AskOptions& options) {
    const auto& answers = answers_->done();
    const auto& plains = plains_->done();
    const int number = question.item.number;
    if (answers.contains(number) && plains.contains(number)) {
      return eval::FrontierItem{answers.at(number), plains.at(number)};
    }
    // Alternates the order, since the second run profits from warm caches.
    std::optional<eval::Record> first;
    std::optional<eval::Record> second;
    const auto ask_plain = [&] {
      second = eval::ask(*asking.plain, *asking.model, question, *asking.metrics, options);
    };
    const bool plain_first = number % 2 == 1;
    if (plain_first) ask_plain();
    first = eval::ask(answerer(asking), *asking.model, question, *asking.metrics, options);
    if (!plain_first) ask_plain();
    if (!first || !second) return std::nullopt;
    // Appends both, even if a killed run has left the answer alone: their times belong together,
    // and for duplicate items the later line counts.
    answers_->append(*first);
    plains_->append(*second);
    return eval::FrontierItem{*std::move(first), *std::move(second)};
  }

  // The answer, beside the shared one of plain decoding. Returns nothing if interrupted.
  std::optional<eval::FrontierItem> ask_untimed(const eval::Question& question,
                                                const Asking& asking,
                                                const eval::AskOptions& options,
                                                PlainAnswers& plain) {
    std::optional<eval::Record> beside = plain.answer(question, asking, options);
    if (!beside) return std::nullopt;
    const auto known = answers_->done().find(question.item.number);
    if (known != answers_->done().end()) {
      return eval::FrontierItem{known->second, *std::move(beside), false};
    }
    std::optional<eval::Record> answer =
        eval::ask(answerer(asking), *asking.model, question, *asking.metrics, options);
    if (!answer) return std::nullopt;
    answers_->append(*answer);
    return eval::FrontierItem{*std::move(answer), *std::move(beside), false};
  }

 private:
  const eval::Answerer& answerer(const Asking& asking) {
    if (!answerer_) answerer_ = make_answerer(asking.model, *asking.interrupt);
    return answerer_;
  }

  eval::Answerer make_answerer(const std::shared_ptr<const Model>& model,
                               const Interrupt& interrupt) {
    if (setting_->sequential) {
      const auto generator = std::make_shared<eval::SequentialGenerator>(
          model, speculation_of(flags_), setting_->rule.rule);
      return [generator](const GenerateRequest& request) { return generator->generate(request); };
    }
    const auto generator = std::make_shared<Generator>(make_generator(model, flags_, interrupt));
    return [generator](const GenerateRequest& request) {
      return std::move(generator->generate({&request, 1}).front());
    };
  }

  const eval::FrontierSetting* setting_;
  ModelFlags flags_;
  std::optional<eval::RecordFile> answers_;
  std::optional<eval::RecordFile> plains_;  // in a timed run
  eval::Answerer answerer_;
};

nlohmann::ordered_json plain_configuration(const ModelFlags& flags, const TaskFlags& task_flags,
                                           const PreparedTask& prepared) {
  auto configuration = configuration_of(flags, task_flags, prepared);
  configuration["plain"] = true;
  return configuration;
}

ModelFlags without_drafter(ModelFlags flags) {
  flags.draft_path.clear();
  flags.speculation = {};
  return flags;
}

// All requested settings. Refuses a rule that does not fit the drafter before anything is run.
std::vector<eval::FrontierSetting> checked_settings(const ModelFlags& model_flags,
                                                    const GridFlags& grid,
                                                    const FrontierFlags& flags) {
  std::vector<eval::FrontierSetting> settings = eval::frontier_settings(
      rules_of(grid), flags.cascades, grid.alphas, lengths_of(grid), samplings_of(grid));
  for (const eval::FrontierSetting& setting : settings) {
    check_speculation(speculation_of(flags_of(setting, model_flags)));
  }
  return settings;
}

PreparedTask prepare_judged_task(const CLI::App& app, const TaskFlags& task_flags) {
  PreparedTask prepared = prepare_task(app, task_flags);
  if (prepared.metrics.empty() || reads_likelihood(prepared.metrics)) {
    throw UsageError("measure frontier", task_flags.task,
                     "a task whose answers are judged (likelihoods: --teacher-forced)",
                     prepared.metrics.empty() ? "one without a metric" : "one of likelihood");
  }
  return prepared;
}

fs::path make_records_folder(const fs::path& directory) {
  fs::path records = directory / "records";
  std::error_code failed;
  fs::create_directories(records, failed);
  if (failed) throw Error("measure frontier", records.string(), failed.message());
  return records;
}

// Writes tables and figures to the folder, the summary to the terminal.
void report(const std::vector<eval::FrontierPoint>& points, const eval::FrontierRun& run,
            const ReportWhere& where) {
  const std::vector<std::string> undrawn =
      eval::write_frontier_report(points, run, where.directory, where.picture);
  Output output;
  output.write(where.json ? eval::json_text(eval::frontier_json(points, run), 1) + "\n"
                          : eval::frontier_text(points, run));
  output.check();
  for (const std::string& problem : undrawn) fmt::print(stderr, "outrider: {}\n", problem);
}

}  // namespace

void add_frontier_flags(CLI::App& app, FrontierFlags& flags) {
  constexpr const char* kGroup = "Frontier";
  app.add_flag(
         "--frontier", flags.chosen,
         "Answer the task in every setting: quality against latency. Answers are timed beside "
         "those of plain decoding; passes, rejections, deferral and compute are counted")
      ->group(kGroup);
  add_filled_text(app, "--cascades", flags.cascades, "SPEC,...", "cascades (token:chow, ...)",
                  "Sequential cascades as baselines: token:chow, sequence:chow, oracle:RULE, with "
                  "alpha=A or through a range of it (default: none)")
      ->group(kGroup);
  add_integer(app, "--timed", flags.n_timed, 0,
              "Questions that are timed in every setting; the rest are answered there for quality "
              "and counts, and by plain decoding once behind each transform (default: all)")
      ->group(kGroup);
}

int run_frontier(const CLI::App& app, const ModelFlags& model_flags, const GridFlags& grid,
                 const TaskFlags& task_flags, const FrontierFlags& flags,
                 const ReportWhere& where) {
  if (where.directory.empty()) {
    throw UsageError("read flags", "--frontier", "--out DIR, where its records are kept", "none");
  }
  const std::vector<eval::FrontierSetting> settings = checked_settings(model_flags, grid, flags);
  PreparedTask prepared = prepare_judged_task(app, task_flags);
  const fs::path records = make_records_folder(where.directory);

  Interrupt interrupt;
  prepared.options.cancel = interrupt.flag();
  const auto n_questions = prepared.set.questions.size();
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  check_encoder_prompt(task_flags, *model);
  const ModelFlags plain_flags = without_drafter(model_flags);
  Generator plain = make_generator(model, plain_flags, interrupt);
  const Asking asking{
      .model = model, .plain = &plain, .metrics = &prepared.metrics, .interrupt = &interrupt};
  const eval::PairSize size = eval::size_of_pair(*model, speculation_of(model_flags));

  const eval::Metric& metric = *prepared.metrics.front();
  int n_failed = static_cast<int>(prepared.set.problems.size());
  std::vector<eval::FrontierPoint> points;
  ItemProgress progress(static_cast<int>(settings.size() * n_questions), 0);
  const auto interrupted = [&] {
    progress.complain("interrupted; the same command goes on where this one was");
    return kExitInterrupted;
  };
  std::optional<PlainAnswers> plain_answers;  // with the named transform
  std::string transform;
  for (const eval::FrontierSetting& setting : settings) {
    set_sampling(setting.sampling, prepared.options);
    const std::string name = eval::name_of(setting.sampling);
    if (!plain_answers || name != transform) {
      plain_answers.emplace(records / (eval::file_part("plain-" + name) + ".jsonl"),
                            plain_configuration(plain_flags, task_flags, prepared));
      transform = name;
    }
    SettingRun run(setting, records, model_flags, task_flags, prepared, flags.n_timed > 0);
    const eval::AskOptions options = asking_of(task_flags, *model, prepared.options);
    std::vector<eval::FrontierItem> items;
    int n_asked = 0;
    for (const eval::Question& question : prepared.set.questions) {
      if (interrupt.raised()) return interrupted();
      try {
        auto item = n_asked++ < flags.n_timed
                        ? run.ask_timed(question, asking, options)
                        : run.ask_untimed(question, asking, options, *plain_answers);
        if (!item) return interrupted();
        items.push_back(*std::move(item));
      } catch (const eval::ItemError& error) {
        ++n_failed;
        progress.complain(error.what());
      }
      progress.step();
    }
    if (items.empty()) continue;
    for (auto& point : eval::measure_points(setting, items, metric, size)) {
      points.push_back(std::move(point));
    }
  }
  if (points.empty()) throw Error("measure frontier", task_flags.task, "an item answered", "none");

  report(points,
         {.task = prepared.task.name,
          .metric = std::string(metric.name()),
          .score = std::string(metric.score_names().front()),
          .larger_is_better = metric.larger_is_better(),
          .target = model_flags.model,
          .drafter = speculation_of(model_flags).drafter},
         where);
  return n_failed > 0 ? kExitError : 0;
}

}  // namespace outrider::cli
