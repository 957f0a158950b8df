// Data sets in files.
#ifndef OUTRIDER_EVAL_DATA_FILE_H_
#define OUTRIDER_EVAL_DATA_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "eval/item.h"
#include "eval/task.h"

namespace outrider::eval {

// The whole of a file (a pipe will do) of at most 1 GiB. Throws Error.
std::string read_data_file(const std::string& file);

// What is wrong with one item.
struct Problem {
  int number = 0;    // Item::number
  std::string text;  // one line, naming file and place
};

struct DataSet {
  std::vector<Item> items;        // those that could be read, in order
  std::vector<Problem> problems;  // with those that could not, in order
  int n_items = 0;                // both
  std::uint64_t digest = 0;       // of all bytes (FNV-1a): tells one data set from another
};

// Reads the data set of a layout. What is wrong with one item becomes a problem and the others are
// read; what is wrong with a file as a whole throws Error: one that cannot be read, is no text or
// no JSON, parallel files of different lengths. As many files as the layout has fields for "lines",
// else one; otherwise UsageError.
DataSet read_data(const DataLayout& layout, const std::vector<std::string>& files);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_DATA_FILE_H_
