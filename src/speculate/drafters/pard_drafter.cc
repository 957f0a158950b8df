// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/pard_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "speculate/registry/drafter_weights.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

PardDrafter::PardDrafter(std::unique_ptr<LanguageModel> model, int target_vocabulary_size,
                         TokenId mask)
    // A position's row depends on where the round began.
    : ModelDrafter(std::move(model), target_vocabulary_size,
                   {.name = "pard", .prefix_determined = false}),
      masks_(kMaxDraftNodes, mask) {}
PardDrafter::~PardDrafter() = default;

int PardDrafter::prepare(const DraftJob& job) {
  return rows_.want(job, ModelDrafter::prepare(job));
}

// Adds the text's tokens that were not run and the masks after them.
void PardDrafter::add_block(const Context& context, const State& state, int n_masks) {
  blocks().begin_block(*state.sequence);
  blocks().add_chain(unseen(context, state));
  blocks().add_chain(std::span<const TokenId>(masks_).first(static_cast<std::size_t>(n_masks)));
}

void PardDrafter::run_blocks() {
  run_model().forward(blocks().blocks(), {.logits = blocks().rows()}, output());
  output().logits.forbid(masks_.front());
}

// The first level runs the drafts; the others look up their rows, without a pass.
LevelwiseDrafter::RowPer PardDrafter::run_level(int level, std::span<const Growing> drafts) {
  if (level == 0) {
    for (const Growing& draft : drafts) {
      const Context& context = draft.context();
      catch_up(context, state_of(context), static_cast<std::size_t>(rows_.n_masks(context)));
    }
    blocks().clear();
    rows_.start_pass();
    for (const Growing& draft : drafts) {
      const Context& context = draft.context();
      add_block(context, state_of(context), rows_.n_masks(context));
      blocks().ask_last(rows_.n_wanted(context));
      rows_.place(context);
    }
    run_blocks();
    for (std::size_t index = 0; index < drafts.size(); ++index) {
      const Context& context = drafts[index].context();
      State& state = state_of(context);
      const int n_known = blocks().n_rows_of(index) - rows_.n_masks(context);
      keep_chain(*state.sequence, static_cast<std::size_t>(n_known));
      state.lags = false;
    }
  } else {
    count_passes(-1);
  }
  return list_rows(drafts,
                   [this](const Context& context, int depth) { return rows_.row(context, depth); });
}

// Runs masks again, after the draft's own tokens, up to the node's place.
bool PardDrafter::run_node(const Context& context, const DraftTree& tree, int node) {
  State& state = state_of(context);
  const int n_masks = tree.node(node).depth;
  std::span<const TokenId> missing = unseen(context, state);
  if (!can_run(missing) || run_model().remaining_context(*state.sequence, missing) < n_masks)
    return false;
  const auto n_rows = static_cast<int>(missing.size()) + n_masks;
  const SequenceGrowth growth{.sequence = state.sequence.get(), .n_tokens = n_rows};
  if (n_rows == 0 || !run_model().fits({&growth, 1})) return false;
  catch_up(context, state, static_cast<std::size_t>(n_masks));
  missing = unseen(context, state);
  blocks().clear();
  add_block(context, state, n_masks);
  blocks().ask();
  run_blocks();
  keep_chain(*state.sequence, missing.size());
  return true;
}

void PardDrafter::end(SequenceId id) {
  rows_.forget(id);
  ModelDrafter::end(id);
}

namespace {

// The spec's mask token, or else the file's.
TokenId mask_of(const std::string& path, const LanguageModel& model, std::optional<TokenId> named) {
  const std::optional<TokenId> mask = named ? named : model.config().mask_token;
  const auto refuse = [&path](const std::string& expected, const std::string& got) {
    throw Error("load drafter", path, expected, got);
  };
  if (!mask) {
    refuse("a mask token (pard_token in config.json, tokenizer.ggml.mask_token_id, or mask=ID)",
           "none");
  }
  const int n_tokens = model.config().vocabulary_size;
  if (*mask < 0 || *mask >= n_tokens) {
    refuse(fmt::format("the mask token to be one of the model's, 0 to {}", n_tokens - 1),
           fmt::format("{}", *mask));
  }
  return *mask;
}

}  // namespace

DrafterPlan read_pard_drafter(const Spec& spec) {
  const std::optional<TokenId> mask = spec.integer("mask", 0, std::numeric_limits<TokenId>::max());
  return {.traits = {.has_draft_prob = true, .prefix_determined = false},
          .shape = chain_shape(spec.integer("length", 1, kMaxDraftNodes).value_or(kPardLength)),
          .confidence = spec.number("confidence", 0, 1).value_or(0),
          .make = [path = spec.required_value("pard:PATH"), mask,
                   weights = DrafterWeights::read(spec)](const DrafterMaterials& materials) {
            auto model = materials.load_model(path, weights.options(materials.load));
            const TokenId masking = mask_of(path, *model, mask);
            return std::make_unique<PardDrafter>(std::move(model), materials.vocabulary_size,
                                                 masking);
          }};
}

}  // namespace outrider
