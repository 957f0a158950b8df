// SPDX-License-Identifier: Apache-2.0
// A file that a long run writes line by line, so that an interrupted run can continue.
#ifndef OUTRIDER_BASE_FILES_RUN_FILE_H_
#define OUTRIDER_BASE_FILES_RUN_FILE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace outrider {

// A JSONL file. Its first line is the head: {"format", "version", "run"}, where "run" is everything
// that determines the other lines. Each line is written at once and whole. A killed run leaves at
// most one incomplete line, which the next run drops. One writer at a time, over all processes. Not
// thread-safe.
class RunFile {
 public:
  // Called for each line after the head in the file, in order; `place` is "FILE, line 17". Throws
  // Error for a line of another kind.
  using ReadLine = std::function<void(std::string_view line, std::string_view place)>;

  // Creates the file or continues it. `format` names the kind of file: "outrider-eval". Throws
  // Error for a file of another kind or of another `run` (with the first member that differs), if
  // another process writes it, or if it cannot be written; and what `read_line` throws. The file is
  // unchanged then.
  RunFile(std::filesystem::path path, std::string format, const nlohmann::ordered_json& run,
          const ReadLine& read_line);
  ~RunFile();
  RunFile(const RunFile&) = delete;
  RunFile& operator=(const RunFile&) = delete;

  // `line`: without the newline. Throws Error if it cannot be written; the file then ends with the
  // line before.
  void append(const std::string& line);

 private:
  void read(const nlohmann::ordered_json& run, const ReadLine& read_line);

  std::filesystem::path path_;
  std::string format_;
  int descriptor_ = -1;
  std::int64_t n_bytes_ = 0;  // whole lines
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_RUN_FILE_H_
