#include "engine/paying_stop.h"

namespace outrider {

void PayingStop::begin(const TrustCurve& curve, double next, double price) {
  begin_free();
  curve_ = &curve;
  next_ = next;
  price_ = price;
}

void PayingStop::begin_free() {
  curve_ = nullptr;
  survival_ = 1;
  said_.clear();
  said_.reserve(DraftPast::kDeepest);
}

bool PayingStop::stop_after(TokenId token, double raw_prob) const {
  said_.push_back(raw_prob);
  if (inner_ != nullptr && inner_->stop_after(token, raw_prob)) return true;
  if (curve_ == nullptr) return false;
  survival_ *= curve_->stands(raw_prob);
  return survival_ * next_ < price_;
}

}  // namespace outrider
