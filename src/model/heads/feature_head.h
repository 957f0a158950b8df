// Heads that draft from a target's hidden states: decoder layers, one as a rule, that read, at each
// place, a state and the token after it, and give the state of the next place and logits for the
// token behind it.
#ifndef OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_
#define OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_

#include <span>
#include <vector>

#include "model/language_model.h"

namespace outrider {

// A language model whose passes take a state beside each token. Row i of a sequence reads the state
// of the text's place i and token i + 1, both known once token i + 1 is; where the target has run
// place i, the state is made of its hidden states (`read`), behind that it is what an earlier row
// gave. In forward():
// - TokenBlock::features (n, dim) are the states that go with the block's tokens;
// - output.features (rows of the pass, dim) are the states that the rows give, one place further
// on,
//   whatever rows get logits; request.feature_layers must be empty;
// - logits (n_rows, the target's vocabulary size) are of the token behind the row's own. A token
// that
//   the head cannot say has minus infinity.
// config() is that of the head's layer with the target's vocabulary. A row's bits depend on its own
// state, token, position and ancestors alone. Heads borrow the target's matrices (embed, project):
// no pass of the target may run at the same time.
class FeatureHead : public LanguageModel {
 public:
  // Which of the target's hidden states the head reads (ForwardRequest::feature_layers).
  virtual std::span<const int> feature_layers() const = 0;
  // What the head makes of them: features (n, feature_layers().size() * dim) to states (n, dim).
  virtual void read(std::span<const float> features, std::span<float> states) = 0;

  // What a row reads where neither its state nor its token is known yet.
  struct Mask {
    TokenId token = kNoToken;  // of the target's vocabulary
    std::vector<float> state;  // (dim)
  };
  // Of heads that draft all tokens in one pass, by rows of masks: they were never trained to go on
  // from the states that rows give. Null: the others.
  virtual const Mask* mask() const { return nullptr; }
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_FEATURE_HEAD_H_
