// What a target says while it judges drafts, kept so that a drafter can learn from it.
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
  // Of all files of the log together. When they are full the oldest texts go, an eighth at a time.
  std::int64_t max_bytes = std::int64_t{64} << 20;
  // Tokens whose probability is kept at each position, the likeliest, eight bytes each; of all
  // others together the mass is. At least 1; more than the vocabulary means all of it.
  int top_k = 32;
};

// Holds every text that was generated with it in GenerateOptions::verdict_log, the prompt included,
// and the target's own law (temperature 1; no bias, penalties or truncation) at each generated
// token. A text is written when it ends, in one piece: a program that is killed loses the texts on
// their way, and a record that is torn then is passed over. What is generated is the same with and
// without a log, bit for bit.
//
// Thread-safe: several generators may share one. The directory is locked for other programs.
class VerdictLog {
 public:
  // Opens or begins the log in this directory, which is made for its owner's eyes alone. Throws
  // Error: in use by another log, begun for another vocabulary or top_k, not writable; UsageError:
  // a bound too small to hold one text, a top_k below 1.
  VerdictLog(const Model& target, const std::filesystem::path& directory,
             const VerdictLogOptions& options = {});
  ~VerdictLog();
  VerdictLog(const VerdictLog&) = delete;
  VerdictLog& operator=(const VerdictLog&) = delete;

  // Why nothing is recorded any more, one line as an Error's: a full disk, mostly. Empty as long as
  // all is well. Generation goes on in either case.
  std::string failure() const;

  // For the engine's own use: whose texts belong here, as what, how many generated tokens of a text
  // at most; and a text that has ended.
  bool belongs_to(const Model& target) const;
  const VerdictLogFormat& format() const;
  std::int64_t most_generated(std::int64_t n_prompt) const;
  void append(const LoggedText& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_VERDICT_LOG_H_
