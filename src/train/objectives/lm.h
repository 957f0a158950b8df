// Language modelling: the next token, from text or from completions of prompts.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_LM_H_
#define OUTRIDER_TRAIN_OBJECTIVES_LM_H_

#include <cstdint>
#include <filesystem>
#include <memory>

#include "io/tensor_source.h"
#include "model/config.h"
#include "train/corpus.h"
#include "train/products.h"

namespace outrider::train {

class Objective;

struct LmOptions {
  ModelConfig config = {};
  Products products = Products::bf16;
  std::filesystem::path init =
      {};                  // a model of the same shape to start from; empty: random weights
  std::uint64_t seed = 0;  // of random weights
  std::shared_ptr<BatchSource> batches = nullptr;
  std::shared_ptr<BatchSource> held_out = nullptr;  // may be null
  int n_held_out_batches = 8;
  std::filesystem::path tokenizer = {};  // copied beside the weights
  ElementType export_type = ElementType::bf16;
};

// Mean cross-entropy of the tokens that count, nats. Held out: "loss", likewise. Exports a model of
// the Llama family. Throws Error if init does not fit.
std::shared_ptr<Objective> make_lm(const LmOptions& options);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_LM_H_
