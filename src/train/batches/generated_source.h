// SPDX-License-Identifier: Apache-2.0
// Training text that the target generates: the kind of text a drafter sees in use.
#ifndef OUTRIDER_TRAIN_BATCHES_GENERATED_SOURCE_H_
#define OUTRIDER_TRAIN_BATCHES_GENERATED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "train/batches/corpus.h"
#include "train/teacher.h"

namespace outrider::train {

struct GenerationOptions {
  int n_prefix = 32;       // tokens of the text that the target continues
  double temperature = 0;  // 0: the most probable token each time
  std::uint64_t seed = 0;
};

// Batches whose sequences begin with the first tokens of another source's sequences; the target
// continues them to the full length. Only the target's tokens count in the loss; padding follows an
// end of text. batch() generates on demand, with one pass over all sequences per token. A batch
// depends only on its number.
class GeneratedSource final : public BatchSource {
 public:
  // Throws Error if the prefix is empty or as long as the sequences.
  GeneratedSource(std::shared_ptr<BatchSource> prefixes, std::shared_ptr<Teacher> target,
                  const GenerationOptions& options);
  Batch batch(std::int64_t number) override;
  std::int64_t n_tokens() const override { return prefixes_->n_tokens(); }
  std::uint64_t fingerprint() const override { return prefixes_->fingerprint(); }

 private:
  TokenId choose(std::span<const float> logits, std::uint64_t draw) const;

  std::shared_ptr<BatchSource> prefixes_;
  std::shared_ptr<Teacher> target_;
  GenerationOptions options_;
  ForwardOutput output_;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_GENERATED_SOURCE_H_
