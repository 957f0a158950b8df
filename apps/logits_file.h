// The file of --logits: raw little-endian f32 rows, one behind each generated id.
#ifndef OUTRIDER_APPS_LOGITS_FILE_H_
#define OUTRIDER_APPS_LOGITS_FILE_H_

#include <filesystem>
#include <span>
#include <string>

namespace outrider::cli {

// Never leaves half a file: what is written goes to a temporary beside it first. (A device or a
// pipe is written to directly.)
class LogitsFile {
 public:
  // Throws Error at once if the file could not be written later. Does not touch an existing one.
  explicit LogitsFile(const std::string& path);

  // logits: (n_ids, vocabulary) f32. Throws Error; the old file is then unchanged.
  void write(std::span<const float> logits) const;

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;  // empty: no ordinary file, write directly
};

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_LOGITS_FILE_H_
