// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "eval/tasks/data_file.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
constexpr const char* kOperation = "read task";

// Reads the members of one JSON object of a task file. Throws Error, with `object` (the file's name
// and the member's), for members of other types.
class Reader {
 public:
  Reader(const json& value, std::string object) : value_(value), object_(std::move(object)) {
    if (!value_.is_object()) fail("a JSON object", value_.type_name());
  }

  // Refuses members that are not among `known`; any of those may be absent.
  void require_keys(std::initializer_list<std::string_view> known) const {
    for (const auto& entry : value_.items()) {
      if (std::find(known.begin(), known.end(), entry.key()) == known.end()) {
        fail(fmt::format("members {}", fmt::join(known, ", ")), entry.key());
      }
    }
  }

  bool has(const char* key) const { return value_.contains(key); }
  const json& at(const char* key) const { return value_.at(key); }

  std::string text(const char* key, std::string fallback = {}) const {
    if (!has(key)) return fallback;
    if (!at(key).is_string()) fail(fmt::format("a text in \"{}\"", key), at(key).type_name());
    return at(key).get<std::string>();
  }

  // A text as a list of one, or a list of texts; empty if the member is absent.
  std::vector<std::string> texts(const char* key) const {
    if (!has(key)) return {};
    if (at(key).is_string()) return {at(key).get<std::string>()};
    std::vector<std::string> result;
    for (const json& element : list(key, "a text or a list of texts")) {
      if (!element.is_string()) {
        fail(fmt::format("texts in \"{}\"", key), element.type_name());
      }
      result.push_back(element.get<std::string>());
    }
    return result;
  }

  // The member must be present.
  const json& list(const char* key, const char* expected) const {
    if (!at(key).is_array()) {
      fail(fmt::format("{} in \"{}\"", expected, key), at(key).type_name());
    }
    return at(key);
  }

  // Empty if the member is absent.
  Template template_of(const char* key) const {
    return Template::parse(text(key), fmt::format("{}: {}", object_, key));
  }

  [[noreturn]] void fail(std::string_view expected, std::string_view got) const {
    throw Error(kOperation, object_, expected, got);
  }

 private:
  const json& value_;
  std::string object_;
};

DataLayout parse_layout(const json& value, const std::string& object) {
  // A format's name alone stands for an object with that format.
  const json whole = value.is_string() ? json{{"format", value}} : value;
  const Reader reader(whole, object + ": data");
  reader.require_keys({"format", "fields", "separator"});
  constexpr std::pair<const char*, DataLayout::Format> kFormats[] = {
      {"jsonl", DataLayout::Format::jsonl},
      {"json", DataLayout::Format::json},
      {"lines", DataLayout::Format::lines},
      {"documents", DataLayout::Format::documents},
      {"squad", DataLayout::Format::squad}};
  const std::string format = reader.text("format", "jsonl");
  const auto* const found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                         [&](const auto& known) { return format == known.first; });
  if (found == std::end(kFormats)) {
    reader.fail("a format out of jsonl, json, lines, documents, squad", format);
  }
  DataLayout layout{.format = found->second,
                    .fields = reader.texts("fields"),
                    .separator = reader.text("separator")};
  if (layout.format == DataLayout::Format::lines && layout.fields.empty()) {
    reader.fail("the files' \"fields\"", "none");
  }
  if (layout.format == DataLayout::Format::documents && layout.separator.empty()) {
    reader.fail("a \"separator\"", "none");
  }
  return layout;
}

}  // namespace

Task parse_task(std::string_view text, std::string_view object) {
  Task task;
  task.json = parse_json(text);
  if (task.json.is_discarded()) throw Error(kOperation, object, "JSON", "something else");
  const std::string name(object);
  const Reader reader(task.json, name);
  reader.require_keys({"name", "description", "source", "data", "instruction", "examples",
                       "example", "prompt", "reference", "metric", "program", "stop", "max_tokens",
                       "slice"});
  task.name = reader.text("name");
  if (task.name.empty()) reader.fail("a \"name\"", "none");
  task.description = reader.text("description");
  task.source = reader.text("source");
  if (reader.has("data")) task.data = parse_layout(reader.at("data"), name);
  task.instruction = reader.template_of("instruction");
  task.example = reader.template_of("example");
  task.prompt = reader.template_of("prompt");
  if (task.prompt.empty()) reader.fail("a \"prompt\"", "none");
  if (reader.has("examples")) {
    for (const json& fields : reader.list("examples", "a list of objects")) {
      const int number = static_cast<int>(task.examples.size());
      if (!fields.is_object()) reader.fail("objects in \"examples\"", fields.type_name());
      task.examples.push_back({.number = number,
                               .place = fmt::format("{}, example {}", name, number + 1),
                               .fields = fields});
    }
    if (task.example.empty()) reader.fail("the \"example\" template of its examples", "none");
    // Throws for an example that lacks a field of the template.
    for (const Item& item : task.examples) task.example.render(item);
  }
  task.references = reader.texts("reference");
  task.metrics = reader.texts("metric");
  task.program = reader.template_of("program");
  task.stop = reader.texts("stop");
  if (std::find(task.stop.begin(), task.stop.end(), "") != task.stop.end()) {
    reader.fail("texts in \"stop\"", "an empty one");
  }
  if (reader.has("max_tokens")) {
    const json& value = reader.at("max_tokens");
    if (!value.is_number_integer() || value.get<std::int64_t>() < 1 ||
        value.get<std::int64_t>() > std::numeric_limits<int>::max()) {
      reader.fail("an integer of 1 or more in \"max_tokens\"", value.dump());
    }
    task.max_tokens = value.get<int>();
  }
  task.slice = reader.text("slice");
  return task;
}

std::vector<Task> list_tasks(const std::vector<fs::path>& folders) {
  std::map<std::string, fs::path> files;  // by name; emplace keeps the earlier folder's
  for (const fs::path& folder : folders) {
    std::error_code absent;  // a folder that cannot be read has no tasks
    for (const auto& entry : fs::directory_iterator(folder, absent)) {
      if (entry.path().extension() == ".json") {
        files.emplace(entry.path().stem().string(), entry.path());
      }
    }
  }
  std::vector<Task> tasks;
  tasks.reserve(files.size());
  for (const auto& entry : files) {
    tasks.push_back(parse_task(read_data_file(entry.second.string()), entry.second.string()));
  }
  return tasks;
}

Task load_task(const std::string& name, const std::vector<fs::path>& folders) {
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json");
  std::error_code ignored;
  // A file is found by its name, which is expected to be the task's.
  for (const fs::path& folder : folders) {
    const fs::path file = folder / (name + ".json");
    if (is_path || !fs::is_regular_file(file, ignored)) continue;
    return parse_task(read_data_file(file.string()), file.string());
  }
  if (is_path) return parse_task(read_data_file(name), name);
  std::vector<std::string> known;
  for (const Task& task : list_tasks(folders)) known.push_back(task.name);
  throw UsageError(kOperation, "--task",
                   known.empty() ? "a task file (none are installed)"
                                 : fmt::format("a task file or one of {}", fmt::join(known, ", ")),
                   name);
}

}  // namespace outrider::eval
