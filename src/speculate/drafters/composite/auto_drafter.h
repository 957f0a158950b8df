// SPDX-License-Identifier: Apache-2.0
// The drafter `auto`: the part that pays most drafts. That is a lookup in text where its draft is
// likely enough to be accepted, or else the small model or head that the controller has found best.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_AUTO_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_AUTO_DRAFTER_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "speculate/drafters/composite/composite_drafter.h"

namespace outrider {

// With DraftJob::choice: the parts that rate their tokens draft first. The draft with the largest
// gain is taken if the gain is above the choice's floor; otherwise the part named by the choice
// drafts. Without a choice, the first part with a draft is taken; parts that rate their tokens come
// first.
class AutoDrafter final : public CompositeDrafter {
 public:
  AutoDrafter(std::vector<CompositeDrafter::Part> parts, std::shared_ptr<const TreeShape> shape,
              DrafterTraits traits);
  std::string_view name() const override { return "auto"; }
  DrafterTraits traits() const override { return traits_; }
  std::span<const Drafter::Option> choices() const override { return choices_; }
  // Parts that catch up later are not shown the prompt, since they may never draft.
  bool catches_up() const override { return catches_up_; }
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override;
  void propose(std::span<DraftJob> jobs) override;

 private:
  void look_up(std::span<DraftJob> jobs);
  void take_found(DraftJob& job);
  void take_first(std::span<DraftJob> jobs);
  bool take(std::size_t part, DraftJob& job);

  DrafterTraits traits_;
  bool catches_up_ = true;
  std::vector<Drafter::Option> choices_;
  std::vector<std::size_t> rating_;  // parts that rate their tokens
  std::vector<std::size_t> others_;
  std::vector<DraftJob*> asked_;
};

// "auto:A,B,...": specs of drafters. "auto" alone takes own_parts(). Throws UsageError for a single
// part.
DrafterPlan read_auto_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_AUTO_DRAFTER_H_
