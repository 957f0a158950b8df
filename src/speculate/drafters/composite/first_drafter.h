// SPDX-License-Identifier: Apache-2.0
// The drafter `first`: takes the first of several drafts that is not empty.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_FIRST_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_FIRST_DRAFTER_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafters/composite/composite_drafter.h"

namespace outrider {

// Asks its parts in order and takes the first draft that is not empty: for example exact indices
// first, and a model where they find nothing. All parts follow the text.
class FirstDrafter final : public CompositeDrafter {
 public:
  FirstDrafter(std::vector<Part> parts, std::shared_ptr<const TreeShape> shape,
               DrafterTraits traits)
      : CompositeDrafter(std::move(parts), std::move(shape)), traits_(traits) {}
  std::string_view name() const override { return "first"; }
  DrafterTraits traits() const override { return traits_; }
  void propose(std::span<DraftJob> jobs) override;

 private:
  DrafterTraits traits_;
  std::vector<DraftJob*> left_;
};

// "first:A,B,...": specs of drafters. Throws UsageError for fewer than two.
DrafterPlan read_first_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_FIRST_DRAFTER_H_
