// SPDX-License-Identifier: Apache-2.0
// Prepared items: prompts rendered, references found.
#ifndef OUTRIDER_EVAL_TASKS_QUESTION_H_
#define OUTRIDER_EVAL_TASKS_QUESTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "eval/tasks/data_file.h"
#include "eval/tasks/item.h"
#include "eval/tasks/task.h"

namespace outrider::eval {

struct Question {
  Item item;
  std::string prompt;                   // or, for metrics of likelihood, the text
  std::vector<std::string> references;  // empty if the task has none
  std::string slice;                    // empty if the task has none
};

struct QuestionSet {
  std::vector<Question> questions;  // in the order of the data
  std::vector<Problem> problems;    // in the order of the data: unreadable items, missing fields
};

inline constexpr std::size_t kMaxWrong = 3;

// n_examples: the number of the task's examples in a prompt, at most all; negative: all.
// n_questions: later items are ignored. Throws Error, with the first item's problem, if the first
// kMaxWrong items all have one: then the file or the task is wrong, not single items.
QuestionSet prepare(const Task& task, DataSet data, int n_examples = -1,
                    std::size_t n_questions = SIZE_MAX);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_QUESTION_H_
