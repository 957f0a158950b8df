// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "outrider/error.h"

namespace outrider::eval {
namespace {

constexpr const char* kOperation = "read item";

std::vector<std::string> references_of(const Item& item, const std::vector<std::string>& fields) {
  std::vector<std::string> references;
  for (const std::string& field : fields) {
    const nlohmann::json* const value = item.find(field);
    const auto fail = [&](std::string_view got) {
      throw Error(kOperation, item.place,
                  fmt::format("a text or a list of texts in \"{}\", the reference", field), got);
    };
    if (value == nullptr) {
      fail("no such field");
    } else if (value->is_array()) {
      for (const nlohmann::json& element : *value) {
        const std::optional<std::string> text = text_of(element);
        if (!text) fail(fmt::format("a list with {} in it", element.type_name()));
        references.push_back(*text);
      }
      if (value->empty()) fail("an empty list");
    } else if (const std::optional<std::string> text = text_of(*value)) {
      references.push_back(*text);
    } else {
      fail(value->type_name());
    }
  }
  return references;
}

}  // namespace

QuestionSet prepare(const Task& task, DataSet data, int n_examples, std::size_t n_questions) {
  std::string shown;
  const std::size_t n_shown =
      n_examples < 0 ? task.examples.size()
                     : std::min(task.examples.size(), static_cast<std::size_t>(n_examples));
  for (std::size_t i = 0; i < n_shown; ++i) shown += task.example.render(task.examples[i]);

  QuestionSet set;
  const auto add_problem = [&set, &task](Problem problem) {
    set.problems.push_back(std::move(problem));
    if (!set.questions.empty() || set.problems.size() < kMaxWrong) return;
    throw Error("read data", task.name,
                fmt::format("none of the first {} items is what the task expects: {}", kMaxWrong,
                            set.problems.front().text));
  };
  auto unreadable = data.problems.begin();
  const auto add_unreadable = [&](int before) {
    for (; unreadable != data.problems.end() && unreadable->number < before; ++unreadable) {
      add_problem(std::move(*unreadable));
    }
  };
  for (Item& item : data.items) {
    if (set.questions.size() == n_questions) return set;
    add_unreadable(item.number);
    try {
      Question question;
      question.prompt = task.instruction.render(item) + shown + task.prompt.render(item);
      question.references = references_of(item, task.references);
      if (!task.slice.empty()) {
        const nlohmann::json* const value = item.find(task.slice);
        const std::optional<std::string> slice = value == nullptr ? std::nullopt : text_of(*value);
        if (!slice) {
          throw Error(kOperation, item.place,
                      fmt::format("a text in \"{}\", the slice", task.slice),
                      value == nullptr ? "no such field" : value->type_name());
        }
        question.slice = *slice;
      }
      question.item = std::move(item);
      set.questions.push_back(std::move(question));
    } catch (const Error& error) {
      add_problem({.number = item.number, .text = error.what()});
    }
  }
  if (set.questions.size() < n_questions) add_unreadable(data.n_items);
  return set;
}

}  // namespace outrider::eval
