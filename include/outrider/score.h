// SPDX-License-Identifier: Apache-2.0
// Logits and hidden states of given texts.
//
//   outrider::Scoring scoring(model, {{.ids = ids}});
//   while (scoring.step()) {}
//   std::vector<float> logits = std::move(scoring.results()[0].logits);  // (n, vocabulary)
//
// A row has the same bits as in generation after the same tokens, whatever runs beside it.
#ifndef OUTRIDER_SCORE_H_
#define OUTRIDER_SCORE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "outrider/model.h"
#include "outrider/types.h"

namespace outrider {

struct ScoreText {
  std::vector<TokenId> ids = {};  // (n): 1 to the model's context
  // For an encoder-decoder: the encoder's input, 1 to the model's context. `ids` are then the
  // decoder's input, including the start token (ModelSummary::start_token). For a decoder: empty.
  std::vector<TokenId> encoder_ids = {};
  // Rows of logits are returned for the tokens from this one on. 0 to n.
  std::size_t first_logits = 0;
};

struct ScoreOptions {
  bool logits = true;
  // Layers whose hidden states are returned for every token, in this order. 0 is the token's
  // embedding, l the residual stream after l layers, n_layers the input of the output matrix (after
  // the final norm).
  std::vector<int> layers = {};
};

struct ScoreResult {
  // (n - first_logits, vocabulary): the raw logits of the token that follows each.
  std::vector<float> logits = {};
  std::vector<float> features = {};  // (n, layers, dim)
};

// Runs the texts together in passes of 256 rows. Not thread-safe. Nothing else may run the model
// during a step.
class Scoring {
 public:
  // Throws Error or UsageError for a text that is empty or longer than the model's context, ids
  // outside the vocabulary, and layers beyond the model. Throws also for encoder input without an
  // encoder, and the reverse.
  Scoring(std::shared_ptr<const Model> model, std::vector<ScoreText> texts,
          const ScoreOptions& options = {});
  ~Scoring();
  Scoring(Scoring&&) noexcept;
  Scoring& operator=(Scoring&&) noexcept;

  // Runs one pass; returns false if nothing is left. Throws Error if the KV cache (--kv-memory) has
  // too little memory for it.
  bool step();
  // One result for each text, in their order; complete once step() has returned false. May be moved
  // from.
  std::vector<ScoreResult>& results();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_SCORE_H_
