// SPDX-License-Identifier: Apache-2.0
// Rank 0's view of a model that several ranks hold together, as a LanguageModel.
#ifndef OUTRIDER_MODEL_RANKS_LEADING_MODEL_H_
#define OUTRIDER_MODEL_RANKS_LEADING_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/decoder_model.h"
#include "model/language_model.h"
#include "model/ranks/communicator.h"
#include "model/ranks/heartbeat.h"

namespace outrider {

// Every pass runs on all ranks (follow_rank), each with its part of the matrices and of the KV
// cache; the bits are those of one process. Passes throw LostRank if a rank is lost, and from then
// on always; failure() may report it before a pass does (heartbeat.h). Operations that need a
// single process are refused: sequences as bytes, and heads that read the target's keys.
class LeadingModel final : public LanguageModel {
 public:
  // part: rank 0's, whose machine has these ranks.
  LeadingModel(std::unique_ptr<DecoderModel> part, std::shared_ptr<Communicator> ranks);
  // Ends follow_rank() on the other ranks.
  ~LeadingModel() override;

  const ModelConfig& config() const override { return part_->config(); }
  Footprint footprint() const override { return part_->footprint(); }
  std::vector<std::string> warnings() const override { return part_->warnings(); }
  std::string failure() const override { return ranks_->failure(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override;
  int context_of(const Sequence& sequence) const override;
  bool fits(std::span<const SequenceGrowth> growths) const override;
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const override;
  void save(const Sequence& sequence, const ByteSink& write) const override;
  std::unique_ptr<Sequence> restore(int n_tokens, const ByteSource& read) override;
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  void embed(std::span<const TokenId> tokens, std::span<float> out) override {
    part_->embed(tokens, out);
  }
  void project(std::span<const float> features, ForwardOutput& output) override;
  std::optional<Matrix> narrower_output(WeightKind kind) const override {
    return part_->narrower_output(kind);
  }
  LogitForm logit_form() const override { return part_->logit_form(); }

 private:
  class OnAllRanks;
  struct Commands;

  std::unique_ptr<DecoderModel> part_;
  std::shared_ptr<Communicator> ranks_;
  std::shared_ptr<Commands> commands_;  // sequences add theirs, too
  std::unique_ptr<Heartbeat> heartbeat_;
  // Reused from pass to pass.
  std::vector<TokenBlock> blocks_;
  std::vector<std::int64_t> numbers_;  // SequenceNumber (rank_commands.h)
  mutable std::vector<SequenceGrowth> growths_;
};

// For every rank but 0: runs its part as rank 0 commands, until rank 0 has ended. Throws LostRank
// if another rank is lost. Announces an error of its own to the others.
void follow_rank(DecoderModel& part, Communicator& ranks);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_LEADING_MODEL_H_
