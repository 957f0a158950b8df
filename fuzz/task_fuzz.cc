// SPDX-License-Identifier: Apache-2.0
// Any bytes as a task file: an Error, or a task which turns every item into a question or reports a
// problem with it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "eval/tasks/data_file.h"
#include "eval/tasks/question.h"
#include "eval/tasks/task.h"
#include "outrider/error.h"

namespace {

using outrider::eval::DataSet;

// Items with the fields that the seeds use, one with fields of other types, and one without any.
DataSet items() {
  DataSet data;
  for (const char* fields :
       {R"({"question": "why?", "answer": "so", "list": ["a", "b"], "n": 3.5,
                                 "deep": {"list": ["x", {"y": true}]}, "kind": "k"})",
        R"({"question": ["p", "q"], "answer": [], "kind": null, "n": {}})", "{}"}) {
    data.items.push_back(
        {.number = data.n_items++, .place = "item", .fields = nlohmann::json::parse(fields)});
  }
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const outrider::eval::Task task = outrider::eval::parse_task(bytes, "input");
    if (task.name.empty() || task.prompt.empty() || task.max_tokens < 1) std::abort();
    if (outrider::eval::parse_task(task.json.dump(), "again").json != task.json) std::abort();
    DataSet all = items();
    const int n_items = all.n_items;
    const auto set = outrider::eval::prepare(task, std::move(all));
    if (set.questions.size() + set.problems.size() != static_cast<std::size_t>(n_items)) {
      std::abort();
    }
  } catch (const outrider::Error&) {
  }
  return 0;
}
