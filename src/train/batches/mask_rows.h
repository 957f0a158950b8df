// SPDX-License-Identifier: Apache-2.0
// Mask-token rows after the places of a text, for training a model that drafts in one pass.
#ifndef OUTRIDER_TRAIN_BATCHES_MASK_ROWS_H_
#define OUTRIDER_TRAIN_BATCHES_MASK_ROWS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "train/batches/mask_choice.h"
#include "train/modules/llama_module.h"

namespace outrider::train {

// The mask rows of one text of n_tokens; they follow the text's own rows. A row of depth d at
// anchor a has position a + d. It attends to the text up to a, to the rows of smaller depth at the
// same anchor (all of them exist), and to itself. A row of a draft attends to the same rows in use.
struct MaskRows {
  // Draws from `generator`, or from torch's default generator if there is none.
  MaskRows(int n_tokens, const MaskChoice& choice, c10::optional<at::Generator> generator = {});

  // Mask rows for evaluation: whole drafts at a quarter of the places, with a number of rows
  // similar to a training step with MaskChoice's defaults. Depends only on the arguments; draws
  // nothing from torch's default generator.
  static MaskRows held_out(int n_tokens, int n_drafted, int number);

  std::int64_t size() const { return anchors.size(0); }

  // (n_drafts, n_drafted) int64: the row indices of each draft that has all its rows, its anchor's
  // text row first. Indices count the text's rows, then the mask rows. n_drafted: as in the
  // MaskChoice.
  torch::Tensor whole_drafts(int n_drafted) const;

  torch::Tensor anchors;  // (size) int64, sorted by depth from 1
  torch::Tensor depths;   // (size) int64
  RowPlaces places;       // of the text's rows and the mask rows
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_MASK_ROWS_H_
