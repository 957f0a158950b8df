// SPDX-License-Identifier: Apache-2.0
// A drafter with wrong tokens at some places of a text, to measure what a bad drafter costs and how
// soon the controller notices.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_SPOILED_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_SPOILED_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "speculate/drafters/forwarding_drafter.h"
#include "speculate/registry/drafter_plan.h"

namespace outrider {

// Drafts what another drafter does, with all its passes. From the text's new token `from` up to its
// new token `to`, each drafted token is replaced by another one, named outright. The replacement is
// computed from the position, whatever the drafter proposed, so drafts stay exact.
class SpoiledDrafter final : public ForwardingDrafter {
 public:
  struct Places {
    std::int64_t from = 0;
    std::int64_t to = std::numeric_limits<std::int64_t>::max();  // exclusive
  };
  SpoiledDrafter(std::unique_ptr<Drafter> inner, Places places, int vocabulary_size)
      : ForwardingDrafter(*inner),
        owned_(std::move(inner)),
        places_(places),
        vocabulary_size_(vocabulary_size) {}

  std::string_view name() const override { return "spoiled"; }
  // The inner drafter's parts are not spoiled, nor is what it leaves out.
  std::span<const Option> choices() const override { return {}; }
  bool rates_tokens() const override { return false; }
  std::optional<double> foreseen(const Context& context, std::size_t n_tokens) override;
  void begin(const Context& context) override;
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;

 private:
  bool is_spoiled(SequenceId id, std::int64_t position) const;
  TokenId other_token(TokenId token, std::int64_t position) const;

  std::unique_ptr<Drafter> owned_;
  Places places_;
  int vocabulary_size_;
  std::unordered_map<SequenceId, std::int64_t> n_prompt_;  // of each text

  // Reused from round to round.
  std::vector<Verdict> verdicts_;
  std::vector<RoundResult> results_;
};

// "spoiled:tokens[:from=N,to=M]+DRAFTER". Throws UsageError for invalid parts.
DrafterPlan read_spoiled_drafter(std::span<const std::string> parts);

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_COMPOSITE_SPOILED_DRAFTER_H_
