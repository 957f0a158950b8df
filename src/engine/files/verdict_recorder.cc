// SPDX-License-Identifier: Apache-2.0
#include "engine/files/verdict_recorder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "sampling/transform.h"

namespace outrider {

VerdictRecorder::VerdictRecorder(const VerdictLogFormat& format, std::span<const TokenId> prompt,
                                 std::int64_t max_generated)
    : format_(format), max_generated_(max_generated) {
  text_.tokens.assign(prompt.begin(), prompt.end());
  text_.n_prompt = static_cast<int>(prompt.size());
}

void VerdictRecorder::add(TokenId token, std::span<const float> logits) {
  if (text_.n_generated() >= max_generated_) return;
  const auto n_kept = static_cast<std::size_t>(format_.n_kept);
  likeliest_tokens(logits, format_.n_kept, kept_);
  const double largest = logits[static_cast<std::size_t>(kept_.front())];
  if (!std::isfinite(largest)) {
    max_generated_ = text_.n_generated();
    return;
  }
  // Rows have a fixed width: impossible tokens pad what the likeliest leave.
  std::vector<bool> is_listed;
  for (TokenId id = 0; kept_.size() < n_kept; ++id) {
    if (is_listed.empty()) {
      is_listed.resize(logits.size());
      for (const TokenId kept : kept_) is_listed[static_cast<std::size_t>(kept)] = true;
    }
    if (!is_listed[static_cast<std::size_t>(id)]) kept_.push_back(id);
  }

  weights_.resize(logits.size());
  std::transform(logits.begin(), logits.end(), weights_.begin(), [largest](float logit) {
    return std::isnan(logit) ? 0.0 : std::exp(double{logit} - largest);
  });
  const double log_sum = std::log(std::accumulate(weights_.begin(), weights_.end(), 0.0));
  for (const TokenId id : kept_) {
    const auto index = static_cast<std::size_t>(id);
    const float logit = logits[index];
    text_.kept_ids.push_back(id);
    text_.kept_logprobs.push_back(std::isnan(logit)
                                      ? -std::numeric_limits<float>::infinity()
                                      : static_cast<float>(double{logit} - largest - log_sum));
    weights_[index] = 0;
  }
  const double rest = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  text_.rest_logprobs.push_back(static_cast<float>(std::log(rest) - log_sum));
  text_.tokens.push_back(token);
}

}  // namespace outrider
