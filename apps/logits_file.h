// The file of --logits: raw little-endian f32 rows, one behind each generated id.
#ifndef OUTRIDER_APPS_LOGITS_FILE_H_
#define OUTRIDER_APPS_LOGITS_FILE_H_

#include <filesystem>
#include <span>
#include <string>

namespace outrider::cli {

// Never leaves half a file: what is written goes to a temporary beside it, which takes the file's
// place in the end. (A device or a pipe is written to directly.)
class LogitsFile {
 public:
  // Throws Error at once if the file could not be written later. Does not touch an existing one.
  explicit LogitsFile(const std::string& path);
  ~LogitsFile();  // removes the temporary, unless commit() made it the file
  LogitsFile(const LogitsFile&) = delete;
  LogitsFile& operator=(const LogitsFile&) = delete;

  // To the temporary; once. logits: (n_ids, vocabulary) f32. Throws Error: a full disk shows here.
  void write(std::span<const float> logits);
  // Puts what was written in the file's place. Throws Error; the old file is then unchanged.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: no ordinary file, write directly
  bool written_ = false;             // the temporary is there
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_LOGITS_FILE_H_
