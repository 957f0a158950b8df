// SPDX-License-Identifier: Apache-2.0
// Records one text's verdicts for a log.
#ifndef OUTRIDER_ENGINE_FILES_VERDICT_RECORDER_H_
#define OUTRIDER_ENGINE_FILES_VERDICT_RECORDER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "io/verdict_log.h"
#include "outrider/types.h"

namespace outrider {

// Grows with each committed token. Reads logits and changes nothing. Not thread-safe.
class VerdictRecorder {
 public:
  // prompt: at least one token. Nothing is kept beyond max_generated tokens.
  VerdictRecorder(const VerdictLogFormat& format, std::span<const TokenId> prompt,
                  std::int64_t max_generated);

  // Adds a committed token and the target's logits (n_vocabulary) from which it came. The record
  // ends where these give no distribution (+infinity, only NaN).
  void add(TokenId token, std::span<const float> logits);

  const LoggedText& text() const { return text_; }

 private:
  VerdictLogFormat format_;
  std::int64_t max_generated_;
  LoggedText text_;
  std::vector<TokenId> kept_;    // reused from token to token
  std::vector<double> weights_;  // (n_vocabulary) exp(logit - largest)
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_FILES_VERDICT_RECORDER_H_
