// Which mask rows a text is trained with. Sees no libtorch.
#ifndef OUTRIDER_TRAIN_MASK_CHOICE_H_
#define OUTRIDER_TRAIN_MASK_CHOICE_H_

namespace outrider::train {

// How many places of a text have a mask row of each depth: all at depth 0, the text's own rows, and
// a share of max(keep^depth, least) of them at depth 1 to n_drafted - 1. Source: An et al., "PARD"
// (arXiv 2504.18583), conditional drop-token; the authors' configuration has 0.7 and 0.2.
struct MaskChoice {
  int n_drafted = 8;   // tokens of a draft: the first is a text row's, each further one a mask's
  double keep = 0.7;   // in (0, 1]
  double least = 0.2;  // likewise
};

// Throws UsageError of a command unless the draft has 2 tokens or more and both shares are in
// (0, 1]. tokens_flag: what the command calls the number of tokens.
void require_valid(const MaskChoice& choice, const char* command, const char* tokens_flag);

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MASK_CHOICE_H_
