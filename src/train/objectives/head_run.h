// SPDX-License-Identifier: Apache-2.0
// Options common to the training of every head on a frozen target.
#ifndef OUTRIDER_TRAIN_OBJECTIVES_HEAD_RUN_H_
#define OUTRIDER_TRAIN_OBJECTIVES_HEAD_RUN_H_

#include <cstdint>
#include <memory>

#include "io/tensor_source.h"
#include "train/batches/corpus.h"
#include "train/modules/products.h"
#include "train/teacher.h"

namespace outrider::train {

struct HeadRun {
  std::shared_ptr<Teacher> target = nullptr;
  std::shared_ptr<BatchSource> batches = nullptr;
  std::shared_ptr<BatchSource> held_out = nullptr;  // may be null
  int n_held_out_batches = 8;
  Products products = Products::bf16;
  std::uint64_t seed = 0;  // of random weights
  ElementType export_type = ElementType::bf16;
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_OBJECTIVES_HEAD_RUN_H_
