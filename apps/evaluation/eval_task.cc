// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/entry.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/evaluation/eval_task_folders.h"
#include "apps/evaluation/item_progress.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/sampling_flags.h"
#include "apps/generate/chat_prompt.h"
#include "eval/evaluation.h"
#include "eval/metrics/make_metric.h"
#include "eval/record.h"
#include "eval/tasks/question.h"
#include "eval/tasks/task.h"
#include "outrider/chat.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider::cli {
namespace {

// The records of all questions, in order; those in `file` are not asked again. Reports invalid
// questions and asks the others. Stops early when interrupted.
std::vector<eval::Record> answer_all(const ModelFlags& model_flags, const TaskFlags& flags,
                                     const std::vector<eval::Question>& questions,
                                     const eval::Metrics& metrics, const GenerateOptions& options,
                                     eval::RecordFile* file, const Interrupt& interrupt,
                                     int& n_failed) {
  std::vector<eval::Record> records;
  const auto is_done = [&](const eval::Question& question) {
    return file != nullptr && file->done().contains(question.item.number);
  };
  const auto n_before =
      static_cast<int>(std::count_if(questions.begin(), questions.end(), is_done));
  const int n_questions = static_cast<int>(questions.size());

  std::shared_ptr<const Model> model;
  std::optional<Generator> generator;
  std::optional<ProgramLog> verdict_log;
  eval::AskOptions asking;
  if (n_before < n_questions) {
    model = load_model(model_flags, interrupt);
    if (!reads_likelihood(metrics)) generator = make_generator(model, model_flags, interrupt);
    asking = asking_of(flags, *model, options);
    asking.generate.verdict_log = verdict_log.emplace(flags.verdict_log, *model).log();
  }

  ItemProgress progress(n_questions, n_before);
  for (const eval::Question& question : questions) {
    if (is_done(question)) {
      records.push_back(file->done().at(question.item.number));
      continue;
    }
    if (interrupt.raised()) break;
    try {
      std::optional<eval::Record> record =
          generator ? eval::ask(*generator, *model, question, metrics, asking)
                    : eval::read(*model, question, metrics, asking);
      if (!record) break;
      if (file != nullptr) file->append(*record);
      records.push_back(*std::move(record));
    } catch (const eval::ItemError& error) {
      ++n_failed;
      progress.complain(error.what());
    }
    if (verdict_log) verdict_log->warn_of_failure();
    progress.step();
  }
  return records;
}

// If there are very many problems, shows the first ones.
void complain_of(const std::vector<eval::Problem>& problems) {
  constexpr std::size_t kMaxShown = 20;
  const std::size_t n_shown = std::min(problems.size(), kMaxShown);
  for (std::size_t i = 0; i < n_shown; ++i) fail(kExitError, problems[i].text);
  if (problems.size() > n_shown) {
    fail(kExitError, fmt::format("{} further items cannot be asked", problems.size() - n_shown));
  }
}

void print_summary(const eval::Task& task, const eval::Summary& summary, int n_questions,
                   int n_failed, bool interrupted, bool json) {
  Output output;
  if (json) {
    nlohmann::ordered_json object = {{"task", task.name}, {"failed", n_failed}};
    object["complete"] = summary.all.n_items == n_questions && n_failed == 0;
    object.update(eval::to_json(summary));
    output.write(object.dump() + "\n");
  } else {
    const std::string failed = n_failed > 0 ? fmt::format(", {} failed", n_failed) : "";
    output.write(
        fmt::format("{}: {}{}\n", task.name, counted(summary.all.n_items, "item"), failed));
    if (interrupted) {
      output.write(fmt::format("incomplete: interrupted before the end of {}\n",
                               counted(n_questions, "item")));
    }
    output.write(eval::to_text(summary));
  }
  output.check();
}

}  // namespace

void add_task_flags(CLI::App& app, TaskFlags& flags) {
  constexpr const char* kTask = "Task";
  add_path(app, "--task", flags.task, "NAME|FILE",
           "What to ask: an installed task (see --list) or a task file")
      ->group(kTask);
  add_filled_texts(app, "--data", flags.data, "FILE...", "a path",
                   "The items, in the task's format. Of parallel texts a file each, in its order")
      ->group(kTask);
  app.add_flag("--list", flags.list, "List the installed tasks and what data they want, and exit")
      ->group(kTask);
  add_integer(app, "--limit", flags.limit, 1, "Ask the first N items that can be read only")
      ->group(kTask);
  add_integer(app, "--examples", flags.examples, 0,
              "Show the first N of the task's examples in a prompt (default: all)")
      ->group(kTask);
  add_integer(app, "--samples", flags.samples, 1,
              "Answers to an item, for pass@K (default: 1). Other metrics judge the first")
      ->group(kTask);
  CLI::Option* chat = app.add_flag("--chat", flags.chat,
                                   "Wrap prompts by the model's chat template. Its end of turn "
                                   "replaces the task's stop texts")
                          ->group(kTask);
  add_filled_text(app, "--encoder-prompt", flags.encoder_prompt, "TEMPLATE", "a template ({de})",
                  "What an encoder-decoder's encoder reads of an item, in place of the task's "
                  "instruction, examples and prompt: \"{de}\", \"translate German to English: "
                  "{de}\"")
      ->group(kTask)
      ->excludes(chat)
      ->excludes(app.get_option("--examples"));
  app.add_flag("--allow-network", flags.allow_network,
               "Run generated programs even where they cannot be kept off the network")
      ->group(kTask);
  add_sampling_flags(app, flags.options);
  add_verdict_log_flags(app, flags.verdict_log);
}

int list_tasks(bool json) {
  const std::vector<eval::Task> tasks = eval::list_tasks(task_folders());
  if (tasks.empty()) {
    throw Error("list tasks", "task files",
                "some in ../share/outrider/tasks beside the program, or in OUTRIDER_TASKS", "none");
  }
  Output output;
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const eval::Task& task : tasks) {
      list.push_back({{"name", task.name},
                      {"description", task.description},
                      {"source", task.source},
                      {"metric", task.metrics}});
    }
    output.write(list.dump() + "\n");
  } else {
    for (const eval::Task& task : tasks) {
      output.write(fmt::format("{}\n    {}\n", task.name, task.description));
      if (!task.source.empty()) output.write(fmt::format("    data: {}\n", task.source));
    }
  }
  output.check();
  return 0;
}

nlohmann::ordered_json configuration_of(const ModelFlags& model_flags, const TaskFlags& flags,
                                        const PreparedTask& prepared) {
  const eval::Task& task = prepared.task;
  const GenerateOptions& options = prepared.options;
  const SamplingParams& sampling = options.sampling;
  const SpeculationOptions& speculation = model_flags.speculation;
  const auto place = [](const std::string& path) {
    std::error_code failed;
    const auto whole = std::filesystem::canonical(path, failed);
    return failed ? path : whole.string();
  };
  nlohmann::ordered_json run;
  run["task"] = task.json;
  run["data"] = prepared.data;
  run["model"] = place(model_flags.model);
  run["weights"] = model_flags.options.weights;
  run["kv"] = model_flags.options.kv;
  run["drafter"] = model_flags.draft_path.empty()
                       ? speculation.drafter
                       : "model:" + escape_spec_value(place(model_flags.draft_path));
  run["tree"] = speculation.tree;
  run["rule"] = speculation.rule;
  run["verify"] = speculation.verify;
  run["max_tokens"] = options.max_tokens;
  run["stop"] = options.stop_strings;
  run["ignore_eos"] = options.ignore_eos;
  run["temperature"] = sampling.temperature;
  run["top_k"] = sampling.top_k;
  run["top_p"] = sampling.top_p;
  run["min_p"] = sampling.min_p;
  run["repetition_penalty"] = sampling.repetition_penalty;
  run["presence_penalty"] = sampling.presence_penalty;
  run["frequency_penalty"] = sampling.frequency_penalty;
  run["seed"] = options.seed;
  run["samples"] = flags.samples;
  run["examples"] =
      std::min<std::int64_t>(flags.examples < 0 ? std::numeric_limits<int>::max() : flags.examples,
                             static_cast<std::int64_t>(task.examples.size()));
  run["chat"] = flags.chat;
  if (!flags.encoder_prompt.empty()) run["encoder_prompt"] = flags.encoder_prompt;
  return run;
}

void check_encoder_prompt(const TaskFlags& flags, const Model& model) {
  if (flags.encoder_prompt.empty() || model.summary().n_encoder_layers > 0) return;
  throw UsageError("read flags", "--encoder-prompt", "an encoder-decoder (T5)",
                   fmt::format("{}, a decoder", model.summary().architecture));
}

bool reads_likelihood(const eval::Metrics& metrics) {
  return !metrics.empty() && metrics.front()->needs_likelihood();
}

eval::AskOptions asking_of(const TaskFlags& flags, const Model& model,
                           const GenerateOptions& options) {
  check_encoder_prompt(flags, model);
  eval::AskOptions asking{.generate = options, .n_samples = flags.samples, .request = {}};
  if (flags.chat) {
    const ChatTemplate chat_template = chat_template_of(model.tokenizer());
    asking.request = [&model, chat_template](const std::string& prompt,
                                             const GenerateOptions& given) {
      const ChatMessage message{.role = "user", .content = prompt};
      return chat_request(chat_template, model.tokenizer(), {&message, 1}, ConversationFlags{},
                          given);
    };
  }
  return asking;
}

PreparedTask prepare_task(const CLI::App& app, const TaskFlags& flags) {
  PreparedTask prepared{.task = eval::load_task(flags.task, task_folders()),
                        .options = flags.options,
                        .metrics = {},
                        .data = {},
                        .set = {}};
  if (!flags.encoder_prompt.empty()) {
    prepared.task.instruction = {};
    prepared.task.examples.clear();
    prepared.task.prompt = eval::Template::parse(flags.encoder_prompt, "--encoder-prompt");
  }
  const auto given = [&app](const char* flag) { return app.get_option(flag)->count() > 0; };
  if (!given("--max-tokens")) prepared.options.max_tokens = prepared.task.max_tokens;
  // Stop texts are for base models, which would continue with another example.
  if (!given("--stop") && !flags.chat) prepared.options.stop_strings = prepared.task.stop;
  prepared.metrics = eval::make_metrics(
      prepared.task, {.allow_network = flags.allow_network, .only_score = false});
  for (const auto& metric : prepared.metrics) {
    if (flags.samples >= metric->n_samples()) continue;
    throw UsageError("read flags", "--samples",
                     fmt::format("{} or more for {}", metric->n_samples(), metric->name()),
                     fmt::format("{}", flags.samples));
  }
  eval::DataSet data = eval::read_data(prepared.task.data, flags.data);
  prepared.data = fmt::format("{} items, digest {:016x}", data.n_items, data.digest);
  prepared.set = eval::prepare(prepared.task, std::move(data), flags.examples,
                               static_cast<std::size_t>(flags.limit));
  complain_of(prepared.set.problems);
  if (prepared.set.questions.empty() && prepared.set.problems.empty()) {
    throw Error("read data", flags.data.front(), "an item", "none");
  }
  return prepared;
}

int run_task(const CLI::App& app, const ModelFlags& model_flags, const TaskFlags& flags,
             const TaskOutput& where) {
  PreparedTask prepared = prepare_task(app, flags);
  if (!flags.verdict_log.directory.empty() && reads_likelihood(prepared.metrics)) {
    throw UsageError("read flags", "--verdict-log", "a task whose answers are generated",
                     fmt::format("{}, which reads likelihoods", prepared.task.name));
  }
  std::optional<eval::RecordFile> file;
  if (!where.records.empty()) {
    file.emplace(where.records, configuration_of(model_flags, flags, prepared));
  }

  Interrupt interrupt;
  prepared.options.cancel = interrupt.flag();
  int n_failed = static_cast<int>(prepared.set.problems.size());
  const std::vector<eval::Record> records =
      answer_all(model_flags, flags, prepared.set.questions, prepared.metrics, prepared.options,
                 file ? &*file : nullptr, interrupt, n_failed);
  print_summary(prepared.task, eval::summarize(records, prepared.metrics),
                static_cast<int>(prepared.set.questions.size()), n_failed, interrupt.raised(),
                where.json);
  if (interrupt.raised()) return kExitInterrupted;
  return n_failed > 0 ? kExitError : 0;
}

}  // namespace outrider::cli
