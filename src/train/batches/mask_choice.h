// SPDX-License-Identifier: Apache-2.0
// Chooses the mask rows that a text is trained with. Uses no libtorch.
#ifndef OUTRIDER_TRAIN_BATCHES_MASK_CHOICE_H_
#define OUTRIDER_TRAIN_BATCHES_MASK_CHOICE_H_

namespace outrider::train {

// How many places of a text have a mask row of each depth. Depth 0 is the text's own rows, all of
// them. At depth d = 1 .. n_drafted - 1 the share is max(keep^d, min_share). Source: An et al.,
// "PARD" (arXiv 2504.18583), conditional drop-token; the authors' configuration has 0.7 and 0.2.
struct MaskChoice {
  int n_drafted = 8;  // tokens of a draft: the first from a text row, the others from mask rows
  double keep = 0.7;  // in (0, 1]
  double min_share = 0.2;  // in (0, 1]
};

// Throws UsageError of a command unless the draft has 2 tokens or more and both shares are in (0,
// 1]. tokens_flag: the command's flag for the number of tokens.
void require_valid(const MaskChoice& choice, const char* command, const char* tokens_flag);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_BATCHES_MASK_CHOICE_H_
