#include "speculate/drafters/medusa_drafter.h"

#include <cstddef>
#include <utility>

#include "speculate/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

struct MedusaDrafter::Growing {
  const Text* text = nullptr;
  TreeGrowth* growth = nullptr;
};

MedusaDrafter::MedusaDrafter(std::unique_ptr<MedusaHeads> heads)
    : heads_(std::move(heads)), feature_layer_(heads_->feature_layer()) {}
MedusaDrafter::~MedusaDrafter() = default;

bool MedusaDrafter::is_ready(const Text& text, const Context& context) {
  return text.n_known > 0 && text.n_known + 1 == static_cast<int>(context.tokens.size());
}

void MedusaDrafter::begin(const Context& context) { texts_[context.id] = {}; }

void MedusaDrafter::prefill(const Context& context, std::span<const TokenId> /*tokens*/,
                            const FeatureRows& features) {
  if (features.n_rows() == 0) return;
  Text& text = texts_.at(context.id);
  text.n_known += features.n_rows();
  const std::span<const float> last = features.row(features.n_rows() - 1);
  text.feature.assign(last.begin(), last.end());
}

void MedusaDrafter::propose(std::span<DraftJob> jobs) {
  growing_.clear();
  while (growths_.size() < jobs.size()) growths_.push_back(std::make_unique<TreeGrowth>());
  for (std::size_t index = 0; index < jobs.size(); ++index) {
    const DraftJob& job = jobs[index];
    const Text& text = texts_.at(job.context->id);
    if (!is_ready(text, *job.context)) continue;
    TreeGrowth& growth = *growths_[index];
    growth.start(job, heads_->n_heads());
    if (!growth.frontier().empty()) growing_.push_back({.text = &text, .growth = &growth});
  }
  for (int level = 0; !growing_.empty(); ++level) {
    features_.clear();
    for (const Growing& growing : growing_) {
      features_.insert(features_.end(), growing.text->feature.begin(), growing.text->feature.end());
    }
    heads_->forward(level, features_, output_);
    ++n_passes_;
    int row = 0;
    for (const Growing& growing : growing_) {
      const std::span<const float> logits = output_.logits_row(row++);
      for (const int node : growing.growth->frontier()) growing.growth->expand(node, logits);
      growing.growth->next_level();
    }
    std::erase_if(growing_,
                  [](const Growing& growing) { return growing.growth->frontier().empty(); });
  }
}

bool MedusaDrafter::draft_at(const Context& context, const DraftTree& tree, int node,
                             Distribution& draft_prob, Distribution* raw_draft) {
  const Text& text = texts_.at(context.id);
  const int depth = tree.node(node).depth;
  if (!is_ready(text, context) || depth >= heads_->n_heads()) return false;
  heads_->forward(depth, text.feature, output_);
  ++n_passes_;
  distributions_at(context, tree, node, output_.logits_row(0), penalised_, draft_prob, raw_draft);
  return true;
}

void MedusaDrafter::observe(std::span<const RoundResult> results) {
  for (const RoundResult& result : results) {
    Text& text = texts_.at(result.context->id);
    // Of the root and the accepted tokens, the last that has a token behind it. Where features were
    // left out before, the text is left to plain decoding.
    const int n_new = static_cast<int>(result.context->tokens.size()) - 1 - text.n_known;
    if (n_new <= 0 || n_new > result.features.n_rows()) continue;
    text.n_known += n_new;
    const std::span<const float> last = result.features.row(n_new - 1);
    text.feature.assign(last.begin(), last.end());
  }
}

void MedusaDrafter::end(SequenceId id) { texts_.erase(id); }

DrafterPlan read_medusa_drafter(const Spec& spec) {
  spec.require_keys({"confidence", DrafterWeights::kKey});
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
