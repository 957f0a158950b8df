// SPDX-License-Identifier: Apache-2.0
// Heads that draft from a target's hidden states: usually one decoder layer, sometimes several. At
// each position they read a state and the next token, and return the next position's state and
// logits for the token after it.
#ifndef OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_
#define OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_

#include <span>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A language model whose passes take a state beside each token. Row i of a sequence reads the state
// of the text's position i, and token i + 1; both are known once token i + 1 is. Where the target
// has run position i, the state is computed from its hidden states (`read`); after that, it is the
// output of an earlier row. In forward():
// - TokenBlock::features (n, dim) are the states of the block's tokens;
// - output.features (rows of the pass, dim) are the states that the rows return, for the next
//   position, whichever rows get logits; request.feature_layers must be empty;
// - logits (n_rows, the target's vocabulary size) are for the token after the row's own. Tokens
//   that the head cannot predict have minus infinity.
// config() is that of the head's layer with the target's vocabulary. A row's bits depend only on
// its state, token, position and ancestors. Heads use the target's matrices (embed, project), so no
// pass of the target may run at the same time.
class FeatureHead : public LanguageModel {
 public:
  // The target's hidden states that the head reads (ForwardRequest::feature_layers).
  virtual std::span<const int> feature_layers() const = 0;
  // Maps these features (n, feature_layers().size() * dim) to states (n, dim).
  virtual void read(std::span<const float> features, std::span<float> states) = 0;

  // The input of a row whose state and token are both unknown.
  struct Mask {
    TokenId token = kNoToken;  // of the target's vocabulary
    std::vector<float> state;  // (dim)
  };
  // For heads that draft all tokens in one pass with rows of masks; these were never trained to
  // continue from the states of rows. Null for other heads.
  virtual const Mask* mask() const { return nullptr; }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_
