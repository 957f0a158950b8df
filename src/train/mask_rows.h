// Rows of a mask token behind the places of a text: what a model that drafts in one pass is trained
// on.
#ifndef OUTRIDER_TRAIN_MASK_ROWS_H_
#define OUTRIDER_TRAIN_MASK_ROWS_H_

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "train/llama_module.h"
#include "train/mask_choice.h"

namespace outrider::train {

// The mask rows of one text of n_tokens, behind the text's own rows. A row of depth d at anchor a
// stands d positions behind the text's place a. It sees the text up to a, the rows of smaller depth
// at the same anchor, all of which are there, and itself: what a draft's row sees in use.
struct MaskRows {
  // Draws from `generator` or, without one, from torch's own.
  MaskRows(int n_tokens, const MaskChoice& choice, c10::optional<at::Generator> generator = {});

  // For figures: whole drafts at a quarter of the places, as many rows as a step has by
  // MaskChoice's own figures; the same for the same `number`, with no draw from torch's own
  // generator.
  static MaskRows held_out(int n_tokens, int n_drafted, int number);

  std::int64_t size() const { return anchors.size(0); }

  // (n_drafts, n_drafted) int64: the rows of each draft that has all of its rows, its anchor's text
  // row first, by their numbers among the text's rows and these. n_drafted: the choice's.
  torch::Tensor whole_drafts(int n_drafted) const;

  torch::Tensor anchors;  // (size) int64, of depth 1 first
  torch::Tensor depths;   // (size) int64
  RowPlaces places;       // of the text's rows and these
};

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MASK_ROWS_H_
