// SPDX-License-Identifier: Apache-2.0
// Text embeddings: the mean over all tokens of the model's last hidden states after the final norm,
// scaled to length 1.
//
//   outrider::Embedding embedding(model, ids);
//   while (embedding.step()) {}
//   std::vector<float> vector = embedding.vector();  // (dim)
#ifndef OUTRIDER_EMBED_H_
#define OUTRIDER_EMBED_H_

#include <memory>
#include <vector>

#include "outrider/model.h"
#include "outrider/types.h"

namespace outrider {

// Not thread-safe. Nothing else may run the model during a step.
class Embedding {
 public:
  // Throws Error for an empty text, one longer than the model's context, and ids outside the
  // vocabulary.
  Embedding(std::shared_ptr<const Model> model, std::vector<TokenId> ids);
  ~Embedding();
  Embedding(Embedding&&) noexcept;
  Embedding& operator=(Embedding&&) noexcept;

  // Whether the KV cache has enough memory for the rest of the text now.
  bool fits();
  // Runs up to 256 more tokens; returns false if none is left. Throws Error if the KV cache
  // (--kv-memory) has too little memory for the text.
  bool step();
  // (dim). Valid once step() has returned false.
  std::vector<float> vector() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_EMBED_H_
