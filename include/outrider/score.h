// What a model makes of given texts: rows of logits and hidden states behind their tokens.
//
//   outrider::Scoring scoring(model, {{.ids = ids}});
//   while (scoring.step()) {}
//   std::vector<float> logits = std::move(scoring.results()[0].logits);  // (n, vocabulary)
//
// A row has the bits that generating has behind the same tokens, whatever runs beside it.
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
  // Of an encoder-decoder: what its encoder reads, 1 to the model's context; `ids` are then what
  // its decoder reads, the start token (ModelSummary::start_token) among them. Of a decoder: empty.
  std::vector<TokenId> encoder_ids = {};
  // Rows of logits are wanted behind the tokens from this one on. 0 to n.
  std::size_t first_logits = 0;
};

struct ScoreOptions {
  bool logits = true;
  // Hidden states that are wanted of every token: 0 is the token's embedding, l the residual stream
  // after l layers, n_layers what the output matrix reads, the final norm applied. In this order.
  std::vector<int> layers = {};
};

struct ScoreResult {
  // (n - first_logits, vocabulary): what the model says of the token behind each, raw.
  std::vector<float> logits = {};
  std::vector<float> features = {};  // (n, layers, dim)
};

// Texts share passes of 256 rows. Not thread-safe, nor may anything else run the model during a
// step.
class Scoring {
 public:
  // Throws Error or UsageError for a text without tokens or with more than the model's context,
  // ids outside the vocabulary, layers beyond the model, and encoders' texts where there is no
  // encoder or the other way round.
  Scoring(std::shared_ptr<const Model> model, std::vector<ScoreText> texts,
          const ScoreOptions& options = {});
  ~Scoring();
  Scoring(Scoring&&) noexcept;
  Scoring& operator=(Scoring&&) noexcept;

  // One pass. false: nothing is left to run. Throws Error where the KV cache (--kv-memory) has no
  // room for it.
  bool step();
  // One for each text, in their order; complete once step() has said false. May be moved from.
  std::vector<ScoreResult>& results();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_SCORE_H_
