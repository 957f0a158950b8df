// SPDX-License-Identifier: Apache-2.0
// A source whose batches are all the same.
#ifndef OUTRIDER_TESTS_SUPPORT_ONE_BATCH_H_
#define OUTRIDER_TESTS_SUPPORT_ONE_BATCH_H_

#include <cstdint>
#include <utility>

#include "train/batches/corpus.h"

namespace outrider::test {

class OneBatch final : public train::BatchSource {
 public:
  explicit OneBatch(train::Batch batch) : batch_(std::move(batch)) {}
  train::Batch batch(std::int64_t) override { return batch_; }
  std::int64_t n_tokens() const override { return static_cast<std::int64_t>(batch_.tokens.size()); }
  std::uint64_t fingerprint() const override { return 0; }

 private:
  train::Batch batch_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_ONE_BATCH_H_
