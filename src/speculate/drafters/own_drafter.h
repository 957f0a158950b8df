// A program's own drafter (outrider/own_drafter.h) as a Drafter of the loop.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_

#include <cstdint>
#include <exception>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "outrider/own_drafter.h"
#include "speculate/drafter_plan.h"

namespace outrider {

// Checks all that comes from the program's code. What that code throws about a text is kept as the
// text's failure(); other texts of the round go on.
//
// Tokens without a law are point masses. A law is recorded as what its token was drawn from, and
// shown to no rule as the drafter's distribution behind a node: rules that look at these refuse the
// drafter. Where the transform is greedy, laws are left out: the model's law is a point mass then,
// and a law that rounds to one as well would leave nothing of it.
class OwnDrafterAdapter final : public Drafter {
 public:
  static constexpr int kLength = 16;  // tokens of the longest path, unless the spec says another
  static constexpr int kTotal = 64;   // and of a draft

  OwnDrafterAdapter(std::shared_ptr<OwnDrafter> own, int vocabulary_size);
  std::string_view name() const override { return "own"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context& context) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::exception_ptr failure(SequenceId id) const override;
  std::int64_t n_passes() const override { return 0; }

 private:
  struct Text {
    std::int64_t id = 0;         // by which the program knows it
    std::exception_ptr failure;  // null: none
  };

  std::shared_ptr<OwnDrafter> own_;
  int vocabulary_size_;
  std::unordered_map<SequenceId, Text> texts_;
  std::vector<int> accepted_;  // reused from round to round
};

// "own[:NAME][,length=K,total=N]" of a program that brings the drafter (not null).
DrafterPlan read_own_drafter(const Spec& spec, const std::shared_ptr<OwnDrafter>& own);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_OWN_DRAFTER_H_
