// SPDX-License-Identifier: Apache-2.0
// A DraftWorth with values that a test lists.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_LISTED_WORTH_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_LISTED_WORTH_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "speculate/draft_worth.h"

namespace outrider::test {

// A certainty is the probability itself. The price of node n is entry n of the list; the last entry
// applies to all later nodes. Records what it is given.
class ListedWorth final : public DraftWorth {
 public:
  struct Refused {
    int parent;
    TokenId token;
    double certainty;
  };

  explicit ListedWorth(std::vector<double> prices) : prices_(std::move(prices)) {}
  double stands(double certainty) const override { return certainty; }
  double price(int n) const override {
    return prices_[std::min(static_cast<std::size_t>(n), prices_.size()) - 1];
  }
  void drafted(double certainty) override { of_drafted.push_back(certainty); }
  void refused(int parent, TokenId token, double certainty) override {
    of_refused.push_back({parent, token, certainty});
  }
  double gain(const DraftTree& /*tree*/) const override { return 0; }
  void withdraw(const DraftTree& /*tree*/) override {}

  std::vector<double> of_drafted;
  std::vector<Refused> of_refused;

 private:
  std::vector<double> prices_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_LISTED_WORTH_H_
