// What is asked of a model, and how its answers are judged.
#ifndef OUTRIDER_EVAL_TASK_H_
#define OUTRIDER_EVAL_TASK_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "eval/item.h"

namespace outrider::eval {

// How a data set lies in its files.
struct DataLayout {
  enum class Format {
    jsonl,      // an object a line
    json,       // one file: a list of objects
    lines,      // parallel files, a field each: line i of every file is item i
    documents,  // plain text, cut where the separator stands; one field, "text"
    squad,      // SQuAD's nested JSON; fields "title", "context", "question", "id", "answers"
  };
  Format format = Format::jsonl;
  std::vector<std::string> fields = {};  // lines: the files' fields, in their order
  std::string separator = {};            // documents
};

// A task file is one JSON object:
//
//   name          how it is called
//   description   a line about it
//   source        where the data come from, for people
//   data          "jsonl" (the default), "json" or "squad"; {"format": "lines", "fields": [...]};
//                 {"format": "documents", "separator": "..."}
//   instruction   a template that begins every prompt
//   examples      objects with the fields of items: what a few-shot prompt shows
//   example       a template, rendered for each of them between instruction and prompt
//   prompt        a template, rendered for the item; with metrics of likelihood, the text itself
//   reference     the field that holds what would be right, or a list of such fields; a field may
//                 be a list of texts, any of which is right
//   metric        a spec or a list of them (eval/make_metric.h)
//   program       pass@k: a template of the Python program, {completion} being the model's answer
//   stop          texts that end an answer
//   max_tokens    of an answer (default: 256)
//   slice         a field by whose value scores are also reported apart
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
  nlohmann::json json;  // all of it, as it was read
};

// Throws Error naming `object` on anything that is not described above.
Task parse_task(std::string_view text, std::string_view object);

// `name` is a task file, or the name of one (without .json) in `folders`. Throws Error, listing the
// known names.
Task load_task(const std::string& name, const std::vector<std::filesystem::path>& folders);

// All task files in the folders, by name; a name in an earlier folder hides later ones. Files that
// are no tasks throw Error.
std::vector<Task> list_tasks(const std::vector<std::filesystem::path>& folders);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASK_H_
