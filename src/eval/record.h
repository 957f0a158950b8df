// SPDX-License-Identifier: Apache-2.0
// The record of each item, and the file of records.
#ifndef OUTRIDER_EVAL_RECORD_H_
#define OUTRIDER_EVAL_RECORD_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/files/run_file.h"
#include "outrider/generate.h"

namespace outrider::eval {

// The cost of answers, summed over samples and items; see GenerateStatistics for the fields.
struct Effort {
  std::int64_t prompt_tokens = 0;
  std::int64_t emitted = 0;
  std::int64_t target_passes = 0;
  std::int64_t drafter_passes = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  double rule_kl = 0;  // nats, may be infinite
  double rule_tv = 0;
  double deferral = 0;  // deferral_rate times emitted
  double prefill_seconds = 0;
  double decode_seconds = 0;
  double draft_seconds = 0;
  double verify_seconds = 0;

  void add(const Effort& other);
  void add(const GenerateStatistics& statistics, std::size_t n_prompt_tokens);
};

struct Record {
  int number = 0;  // the item's
  std::string place;
  std::string slice;
  std::vector<std::string> texts;     // one a sample
  std::vector<std::string> finishes;  // "stop" or "length", one a sample
  std::vector<std::string> references;
  std::map<std::string, std::vector<double>> counts;  // by metric
  std::map<std::string, double> scores;  // of this item alone, as information for users
  Effort effort;
};

// Writes and parses one line of JSON. parse_record throws Error with `place` on anything else.
std::string to_line(const Record& record);  // without the newline
Record parse_record(std::string_view line, std::string_view place);

// The records of a run, a line for each item, in a file that survives an interrupted run
// (base/files/run_file.h). The later of two lines for one item counts. One writer at a time. Not
// thread-safe.
class RecordFile {
 public:
  // Creates the file or continues it. `configuration` is everything that determines an answer.
  // Throws Error for records of another configuration (with the first member that differs), an
  // invalid line, another process that writes, and a file that cannot be written.
  RecordFile(std::filesystem::path path, const nlohmann::ordered_json& configuration);

  // The records in the file when it was opened, by the item's number.
  const std::map<int, Record>& done() const { return done_; }

  // Throws Error if it cannot be written; the file then ends with the record before.
  void append(const Record& record);

 private:
  std::map<int, Record> done_;
  RunFile file_;  // after done_, which it fills while it is read
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_RECORD_H_
