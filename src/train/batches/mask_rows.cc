// SPDX-License-Identifier: Apache-2.0
#include "train/batches/mask_rows.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace outrider::train {

using torch::Tensor;

MaskRows::MaskRows(int n_tokens, const MaskChoice& choice, c10::optional<at::Generator> generator) {
  std::vector<Tensor> anchors_of_depth;
  std::vector<Tensor> depths_of_depth;
  Tensor kept = torch::arange(n_tokens, torch::kInt64);
  for (int depth = 1; depth < choice.n_drafted; ++depth) {
    const double share = std::max(std::pow(choice.keep, depth), choice.min_share);
    // A row at the text's last token has no following token to predict.
    kept = kept.masked_select(kept + depth < n_tokens);
    const auto n_kept = std::min<std::int64_t>(std::llround(share * n_tokens), kept.size(0));
    kept = kept.index_select(
        0, torch::randperm(kept.size(0), generator, torch::kInt64).narrow(0, 0, n_kept));
    anchors_of_depth.push_back(kept);
    depths_of_depth.push_back(torch::full({n_kept}, depth, torch::kInt64));
  }
  const Tensor none = torch::zeros({0}, torch::kInt64);
  anchors = anchors_of_depth.empty() ? none : torch::cat(anchors_of_depth);
  depths = depths_of_depth.empty() ? none : torch::cat(depths_of_depth);

  // A text row is its own anchor, with depth 0.
  const Tensor text = torch::arange(n_tokens, torch::kInt64);
  const Tensor all_anchors = torch::cat({text, anchors});
  const Tensor all_depths = torch::cat({torch::zeros_like(text), depths});
  const Tensor is_of_text = all_depths == 0;
  const Tensor sees_text = is_of_text & (all_anchors <= all_anchors.unsqueeze(1));
  const Tensor sees_mask = is_of_text.logical_not() & (all_anchors == all_anchors.unsqueeze(1)) &
                           (all_depths <= all_depths.unsqueeze(1));
  places = {.positions = all_anchors + all_depths, .unseen = (sees_text | sees_mask).logical_not()};
}

MaskRows MaskRows::held_out(int n_tokens, int n_drafted, int number) {
  constexpr double kShare = 0.25;
  return {n_tokens,
          {.n_drafted = n_drafted, .keep = kShare, .min_share = kShare},
          at::make_generator<at::CPUGeneratorImpl>(static_cast<std::uint64_t>(number))};
}

Tensor MaskRows::whole_drafts(int n_drafted) const {
  const std::int64_t n_tokens = places.positions.size(0) - size();
  // Each depth's anchors are among those of the depth before: the deepest ones identify whole
  // drafts.
  const Tensor wanted = std::get<0>(anchors.masked_select(depths == n_drafted - 1).sort());
  Tensor rows = torch::empty({wanted.size(0), n_drafted}, torch::kInt64);
  rows.select(1, 0).copy_(wanted);
  for (int depth = 1; depth < n_drafted; ++depth) {
    const Tensor is_row = (depths == depth) & torch::isin(anchors, wanted);
    const Tensor of_depth = torch::arange(size(), torch::kInt64).masked_select(is_row);
    const Tensor order = anchors.masked_select(is_row).argsort();
    rows.select(1, depth).copy_(of_depth.index_select(0, order) + n_tokens);
  }
  return rows;
}

}  // namespace outrider::train
