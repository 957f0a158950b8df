// SPDX-License-Identifier: Apache-2.0
// The file of --logits: raw little-endian f32 rows, one after each generated id.
#ifndef OUTRIDER_APPS_LOGITS_FILE_H_
#define OUTRIDER_APPS_LOGITS_FILE_H_

#include <filesystem>
#include <span>
#include <string>

namespace outrider::cli {

// Never leaves a partial file: data goes to a temporary beside the file, which finally replaces it.
// (A device or a pipe is written to directly.)
class LogitsFile {
 public:
  // Throws Error at once if the file could not be written later. Does not change an existing file.
  explicit LogitsFile(const std::string& path);
  ~LogitsFile();  // removes the temporary file, unless committed
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  // Writes to the temporary file; call it once. logits: (n_ids, vocabulary) f32. Throws Error, for
  // example for a full disk.
  void write(std::span<const float> logits);
  // Replaces the file with the temporary. Throws Error; the old file is then unchanged.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: not a regular file, written directly
  bool written_ = false;             // the temporary exists
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_LOGITS_FILE_H_
