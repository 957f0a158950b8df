// SPDX-License-Identifier: Apache-2.0
// A chain copied from an earlier occurrence of the text's last tokens, as long as it pays.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RATED_CHAIN_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RATED_CHAIN_H_

#include "speculate/draft_worth.h"

namespace outrider {

// For one draft. Not thread-safe.
class RatedChain {
 public:
  // worth: null for a chain without a limit; n_matched: how many last tokens match, at least 1.
  RatedChain(DraftWorth* worth, int n_matched) : worth_(worth), n_matched_(n_matched) {}

  // Whether to draft a token after n_drafted others; on true the caller drafts it. If accepted, the
  // tokens copied so far lengthen the match.
  bool goes_on(int n_drafted, TokenId token) {
    if (worth_ == nullptr) return true;
    const double certainty = certainty_of_match(n_matched_ + n_drafted);
    survival_ *= worth_->stands(certainty);
    if (survival_ < worth_->price(n_drafted + 1)) {
      worth_->refused(n_drafted, token, certainty);
      return false;
    }
    worth_->drafted(certainty);
    return true;
  }

 private:
  DraftWorth* worth_;
  int n_matched_;
  double survival_ = 1;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_RATED_CHAIN_H_
