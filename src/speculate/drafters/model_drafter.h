// A small language model as drafter: chains drawn from its distribution under the request's own
// sampling transform.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
#define OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "model/language_model.h"
#include "speculate/drafter.h"

namespace outrider {

// Keeps one sequence of the model per text. Accepted tokens are never recomputed: after a round the
// keys and values of the accepted path stay; only the last drafted token, which was proposed but
// not run, and the verifier's own token are fed when the next draft begins.
class ModelDrafter final : public Drafter {
 public:
  // Tokens below the smaller of the two vocabulary sizes mean the same to both models (many
  // families pad their output matrix to different sizes); others are never drafted.
  ModelDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size);
  ~ModelDrafter() override;

  std::string_view name() const override { return "model"; }
  DrafterTraits traits() const override {
    return {.has_draft_prob = true, .prefix_determined = true};
  }
  void begin(const Context& context) override;
  void prefill(const Context& context, std::span<const TokenId> tokens) override;
  void propose(std::span<DraftJob> jobs) override;
  void observe(std::span<const RoundResult> results) override;
  void end(SequenceId id) override;
  std::int64_t n_passes() const override { return n_passes_; }

  const LanguageModel& model() const { return *model_; }

 private:
  struct Growing;  // a chain that is being drafted
  bool can_run(std::span<const TokenId> tokens) const;
  void draw_next(Growing& growing, std::span<const float> logits);

  std::unique_ptr<LanguageModel> model_;
  std::size_t shared_vocabulary_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::int64_t n_passes_ = 0;

  // Reused from round to round.
  ForwardOutput output_;
  std::vector<Growing> growing_;
  std::vector<TokenBlock> blocks_;
  std::vector<float> penalised_;
  Distribution raw_;  // for stop rules
  std::vector<TokenId> path_tokens_;
  std::vector<int> path_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_MODEL_DRAFTER_H_
