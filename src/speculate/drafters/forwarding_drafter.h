// SPDX-License-Identifier: Apache-2.0
// A drafter that forwards every call to another one: a base for drafters that change or observe
// some calls.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_FORWARDING_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_FORWARDING_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string_view>

#include "speculate/drafter.h"

namespace outrider {

class ForwardingDrafter : public Drafter {
 public:
  // inner must outlive this.
  explicit ForwardingDrafter(Drafter& inner) : inner_(&inner) {}

  std::string_view name() const override { return inner_->name(); }
  DrafterTraits traits() const override { return inner_->traits(); }
  std::span<const int> feature_layers() const override { return inner_->feature_layers(); }
  bool uses_target_cache() const override { return inner_->uses_target_cache(); }
  std::span<const Option> choices() const override { return inner_->choices(); }
  bool rates_tokens() const override { return inner_->rates_tokens(); }
  bool catches_up() const override { return inner_->catches_up(); }
  std::size_t n_behind(const Context& context) const override { return inner_->n_behind(context); }
  std::size_t n_behind_recent(const Context& context) const override {
    return inner_->n_behind_recent(context);
  }
  std::optional<double> foreseen(const Context& context, std::size_t n_tokens) override {
    return inner_->foreseen(context, n_tokens);
  }
  void begin(const Context& context) override { inner_->begin(context); }
  std::size_t reusable(SequenceId earlier, std::size_t n_common) const override {
    return inner_->reusable(earlier, n_common);
  }
  void begin_behind(const Context& context, SequenceId earlier, std::size_t n_run) override {
    inner_->begin_behind(context, earlier, n_run);
  }
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override {
    inner_->prefill(context, tokens, features);
  }
  void propose(std::span<DraftJob> jobs) override { inner_->propose(jobs); }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    return inner_->draft_at(context, tree, node, draft_prob, raw_draft);
  }
  void observe(std::span<const RoundResult> results) override { inner_->observe(results); }
  void end(SequenceId id) override { inner_->end(id); }
  void rewind(const Context& context, std::size_t n_common) override {
    inner_->rewind(context, n_common);
  }
  std::exception_ptr failure(SequenceId id) const override { return inner_->failure(id); }
  std::int64_t n_passes() const override { return inner_->n_passes(); }

 protected:
  Drafter& inner() const { return *inner_; }

 private:
  Drafter* inner_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_FORWARDING_DRAFTER_H_
