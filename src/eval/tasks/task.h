// SPDX-License-Identifier: Apache-2.0
// A task: what a model is asked, and how its answers are judged.
#ifndef OUTRIDER_EVAL_TASKS_TASK_H_
#define OUTRIDER_EVAL_TASKS_TASK_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "eval/tasks/item.h"

namespace outrider::eval {

// The layout of a data set's files.
struct DataLayout {
  enum class Format {
    jsonl,      // an object a line
    json,       // one file: a list of objects
    lines,      // parallel files, one for each field: line i of every file is item i
    documents,  // plain text, split at the separator; one field, "text"
    squad,      // SQuAD's nested JSON; fields "title", "context", "question", "id", "answers"
  };
  Format format = Format::jsonl;
  std::vector<std::string> fields = {};  // for lines: the files' fields, in order
  std::string separator = {};            // for documents
};

// A task file is one JSON object:
//
//   name          the task's name
//   description   a line about it
//   source        the origin of the data, as information for users
//   data          "jsonl" (the default), "json" or "squad"; {"format": "lines", "fields": [...]};
//                 {"format": "documents", "separator": "..."}
//   instruction   a template that begins every prompt
//   examples      objects with the fields of items, for few-shot prompts
//   example       a template, rendered for each of them between instruction and prompt
//   prompt        a template, rendered for the item; with metrics of likelihood, the text itself
//   reference     the field with the correct answer, or a list of such fields; a field may be a
//                 list of texts, as alternatives
//   metric        a spec or a list of them (eval/metrics/make_metric.h)
//   program       pass@k: a template of the Python program, {completion} being the model's answer
//   stop          texts that end an answer
//   max_tokens    of an answer (default: 256)
//   slice         a field; scores are also reported for each of its values
struct Task {
  std::string name;
  std::string description;
  std::string source;
  DataLayout data;
  Template instruction;
  std::vector<Item> examples;
  Template example;
  Template prompt;
  std::vector<std::string> references;  // fields
  std::vector<std::string> metrics;     // specs
  Template program;
  std::vector<std::string> stop;
  int max_tokens = 256;
  std::string slice;
  nlohmann::json json;  // the whole object, as read
};

// Throws Error with `object` on anything that is not described above.
Task parse_task(std::string_view text, std::string_view object);

// `name` is a task file, or the name of one (without .json) in `folders`. Throws Error with the
// known names.
Task load_task(const std::string& name, const std::vector<std::filesystem::path>& folders);

// All task files in the folders, by name; a name in an earlier folder hides later ones. Throws
// Error for files that are not tasks.
std::vector<Task> list_tasks(const std::vector<std::filesystem::path>& folders);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_TASK_H_
