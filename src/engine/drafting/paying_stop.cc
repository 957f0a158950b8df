// SPDX-License-Identifier: Apache-2.0
#include "engine/drafting/paying_stop.h"

#include <algorithm>
#include <cstddef>

namespace outrider {

void PayingStop::begin(const TrustCurve& curve, const TrustOfText& text, const Prices& prices) {
  begin_free();
  curve_ = &curve;
  text_ = text;
  next_ = text.shifted(curve.mean());
  prices_ = prices;
}

void PayingStop::begin_free() {
  curve_ = nullptr;
  survival_ = 1;
  raw_probs_.clear();
  raw_probs_.reserve(DraftPast::kDeepest);
}

bool PayingStop::stop_after(TokenId token, double raw_prob) const {
  raw_probs_.push_back(raw_prob);
  if (inner_ != nullptr && inner_->stop_after(token, raw_prob)) return true;
  if (curve_ == nullptr) return false;
  survival_ *= text_.shifted(curve_->stands(raw_prob));
  const std::size_t n_drafted = std::min(raw_probs_.size(), prices_.size());
  return survival_ * next_ < prices_[n_drafted - 1];
}

}  // namespace outrider
