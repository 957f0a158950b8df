// SPDX-License-Identifier: Apache-2.0
// Data sets in files.
#ifndef OUTRIDER_EVAL_TASKS_DATA_FILE_H_
#define OUTRIDER_EVAL_TASKS_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "eval/tasks/item.h"
#include "eval/tasks/task.h"

namespace outrider::eval {

// The whole contents of a file (or pipe) of at most 1 GiB. Throws Error.
std::string read_data_file(const std::string& file);

// A problem with one item.
struct Problem {
  int number = 0;    // Item::number
  std::string text;  // one line, naming file and place
};

struct DataSet {
  std::vector<Item> items;        // the readable ones, in order
  std::vector<Problem> problems;  // of the unreadable ones, in order
  int n_items = 0;                // both
  std::uint64_t digest = 0;       // of all bytes (FNV-1a): identifies the data set
};

// Reads the data set of a layout. A problem with one item is recorded, and the others are read. A
// problem with a whole file throws Error: it cannot be read, is not text or JSON, or parallel files
// have different lengths. "lines" needs as many files as the layout has fields, other formats one;
// otherwise throws UsageError.
DataSet read_data(const DataLayout& layout, const std::vector<std::string>& files);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_DATA_FILE_H_
