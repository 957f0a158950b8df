// Items made ready: prompts rendered, references found.
#ifndef OUTRIDER_EVAL_QUESTION_H_
#define OUTRIDER_EVAL_QUESTION_H_

#include <string>
#include <vector>

#include "eval/data_file.h"
#include "eval/item.h"
#include "eval/task.h"

namespace outrider::eval {

struct Question {
  Item item;
  std::string prompt;                   // or, for metrics of likelihood, the text
  std::vector<std::string> references;  // empty where the task names none
  std::string slice;                    // empty where the task names none
};

struct QuestionSet {
  std::vector<Question> questions;    // in the order of the data
  std::vector<std::string> problems;  // one line each: unreadable items, missing fields
};

// n_examples: how many of the task's examples a prompt shows, at most all; negative: all.
QuestionSet prepare(const Task& task, DataSet data, int n_examples = -1);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_QUESTION_H_
