// Texts as vectors: the mean of the model's last hidden states, the final norm applied, over all
// tokens of a text, scaled to length 1.
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

// Not thread-safe, nor may anything else run the model during a step.
class Embedding {
 public:
  // Throws Error for a text without tokens, one of more tokens than the model's context, and ids
  // outside the vocabulary.
  Embedding(std::shared_ptr<const Model> model, std::vector<TokenId> ids);
  ~Embedding();
  Embedding(Embedding&&) noexcept;
  Embedding& operator=(Embedding&&) noexcept;

  // Whether the KV cache has room for the rest of the text now.
  bool fits();
  // Runs up to 256 more tokens; false: none is left. Throws Error where the KV cache
  // (--kv-memory) has no room for the text.
  bool step();
  // Once step() has said false: (dim).
  std::vector<float> vector() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_EMBED_H_
