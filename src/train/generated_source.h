// Text that the target itself writes: what a drafter meets in use.
#ifndef OUTRIDER_TRAIN_GENERATED_SOURCE_H_
#define OUTRIDER_TRAIN_GENERATED_SOURCE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "train/corpus.h"
#include "train/teacher.h"

namespace outrider::train {

struct GenerationOptions {
  int n_prefix = 32;       // tokens of the text that the target goes on from
  double temperature = 0;  // 0: the most probable token each time
  std::uint64_t seed = 0;
};

// The first tokens of another source's sequences, continued by the target up to their length. The
// loss counts on what the target wrote; behind an end of text there is padding. A batch is made
// when it is asked for, all its sequences in one pass a token, and depends on its number alone.
class GeneratedSource final : public BatchSource {
 public:
  // Throws Error if the prefix is empty or leaves nothing to write.
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

#endif  // OUTRIDER_TRAIN_GENERATED_SOURCE_H_
