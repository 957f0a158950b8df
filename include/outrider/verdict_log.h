// SPDX-License-Identifier: Apache-2.0
// Records what a target says while it verifies drafts, so that a drafter can learn from it.
//
//   outrider::VerdictLog log(*model, "verdicts");
//   generator.generate(prompt, {.verdict_log = &log});
//   // outrider train online --log verdicts --drafter small --out tuned
#ifndef OUTRIDER_VERDICT_LOG_H_
#define OUTRIDER_VERDICT_LOG_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "outrider/model.h"

namespace outrider {

struct LoggedText;
struct VerdictLogFormat;

struct VerdictLogOptions {
  // Limit for all files of the log together. When it is reached the oldest texts are dropped, an
  // eighth of the log at a time.
  std::int64_t max_bytes = std::int64_t{64} << 20;
  // The likeliest tokens whose probabilities are kept at each position, eight bytes each; the rest
  // is kept as one mass. At least 1; more than the vocabulary means all of it.
  int top_k = 32;
};

// Holds every text generated with it as GenerateOptions::verdict_log, prompt included, and the
// target's own distribution (temperature 1; no bias, penalties or truncation) at each generated
// token. A text is written whole when it ends. A killed program loses its unfinished texts, and
// readers skip a record that was cut off. Generated texts are the same with and without a log, bit
// for bit.
//
// Thread-safe: several generators may share one. The directory is locked against other programs.
class VerdictLog {
 public:
  // Opens or creates the log in this directory, which is created readable by its owner only. Throws
  // Error if it is in use by another log, was begun for another vocabulary or top_k, or is not
  // writable. Throws UsageError for a max_bytes too small for one text, and for a top_k below 1.
  VerdictLog(const Model& target, const std::filesystem::path& directory,
             const VerdictLogOptions& options = {});
  ~VerdictLog();
  VerdictLog(const VerdictLog&) = delete;
  VerdictLog& operator=(const VerdictLog&) = delete;

  // Why recording has stopped, one line in the form of an Error, for example a full disk; empty: no
  // failure. Generation continues in either case.
  std::string failure() const;

  // For internal use: whether a target's texts belong here, the format of the records, the maximum
  // of generated tokens of a text, and the addition of an ended text.
  bool belongs_to(const Model& target) const;
  const VerdictLogFormat& format() const;
  std::int64_t max_generated(std::int64_t n_prompt) const;
  void append(const LoggedText& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_VERDICT_LOG_H_
