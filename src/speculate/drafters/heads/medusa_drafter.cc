// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/heads/medusa_drafter.h"

#include <cstddef>
#include <utility>

#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

MedusaDrafter::MedusaDrafter(std::unique_ptr<MedusaHeads> heads)
    : heads_(std::move(heads)), feature_layer_(heads_->feature_layer()) {}
MedusaDrafter::~MedusaDrafter() = default;

bool MedusaDrafter::is_ready(const State& state, const Context& context) {
  return state.n_known > 0 && state.n_known + 1 == static_cast<int>(context.tokens.size());
}

void MedusaDrafter::begin(const Context& context) { states_[context.id] = {}; }

// The target always runs one token again: the heads read its hidden state at the last token.
std::size_t MedusaDrafter::reusable(SequenceId /*earlier*/, std::size_t n_common) const {
  return n_common - std::min<std::size_t>(n_common, 1);
}

void MedusaDrafter::begin_behind(const Context& context, SequenceId /*earlier*/,
                                 std::size_t n_run) {
  states_[context.id] = {.n_known = static_cast<int>(n_run), .feature = {}};
}

void MedusaDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                            const FeatureRows& features) {
  if (features.n_rows() == 0) return;
  State& state = states_.at(context.id);
  state.n_known += features.n_rows();
  const std::span<const float> last = features.row(features.n_rows() - 1);
  state.feature.assign(last.begin(), last.end());
}

int MedusaDrafter::prepare(const DraftJob& job) {
  return is_ready(states_.at(job.context->id), *job.context) ? heads_->n_heads() : 0;
}

LevelwiseDrafter::RowPer MedusaDrafter::run_level(int level, std::span<const Growing> drafts) {
  features_.clear();
  for (const Growing& draft : drafts) {
    const std::vector<float>& feature = states_.at(draft.context().id).feature;
    features_.insert(features_.end(), feature.begin(), feature.end());
  }
  heads_->forward(level, features_, output());
  return RowPer::draft;
}

bool MedusaDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  const State& state = states_.at(context.id);
  const int depth = tree.node(node).depth;
  if (!is_ready(state, context) || depth >= heads_->n_heads()) return false;
  heads_->forward(depth, state.feature, output());
  return true;
}

void MedusaDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    State& state = states_.at(result.context->id);
    // Takes the last row, among the root and the accepted tokens, that has a token after it. If
    // earlier features were left out, the text gets plain decoding.
    const int n_new = static_cast<int>(result.context->tokens.size()) - 1 - state.n_known;
    if (n_new <= 0 || n_new > result.features.n_rows()) continue;
    state.n_known += n_new;
    const std::span<const float> last = result.features.row(n_new - 1);
    state.feature.assign(last.begin(), last.end());
  }
}

void MedusaDrafter::end(SequenceId id) { states_.erase(id); }

DrafterPlan read_medusa_drafter(const Spec& spec) {
  return {.traits = {.has_draft_prob = true, .prefix_determined = false, .reads_features = true},
          .shape = std::make_shared<FixedShape>(medusa_tree()),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = spec.required_value("medusa:PATH"),
                   weights = DrafterWeights::read(spec)](const DrafterMaterials& materials) {
            return std::make_unique<MedusaDrafter>(
                load_medusa_heads(path, *materials.target, weights.options(materials.load)));
          }};
}

}  // namespace outrider
