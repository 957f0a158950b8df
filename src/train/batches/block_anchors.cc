// SPDX-License-Identifier: Apache-2.0
#include "train/batches/block_anchors.h"

#include <algorithm>

namespace outrider::train {

using torch::Tensor;

AnchoredBlocks::AnchoredBlocks(const Tensor& text, const Tensor& text_weights,
                               const AnchorChoice& choice, c10::optional<at::Generator> generator) {
  const std::int64_t n_sequences = text.size(0);
  const std::int64_t length = text.size(1);
  // How many consecutive tokens count after each place, up to n_drafted: (n_sequences, length).
  Tensor n_counting = torch::zeros_like(text);
  Tensor still = torch::ones_like(text, torch::kBool);
  const std::int64_t n_followed = choice.n_drafted;
  for (std::int64_t k = 1; k <= std::min(n_followed, length - 1); ++k) {
    const Tensor counts = torch::cat({text_weights.narrow(1, k, length - k) > 0,
                                      torch::zeros({n_sequences, k}, still.options())},
                                     1);
    still = still & counts;
    n_counting = n_counting + still.to(torch::kInt64);
  }
  Tensor is_candidate = n_counting >= (choice.whole ? n_followed : 1);
  is_candidate.select(1, 0).fill_(false);

  const Tensor keys =
      torch::rand({n_sequences, length}, generator, torch::kFloat32).to(text.device());
  const auto [best, places] = keys.masked_fill(is_candidate.logical_not(), -1)
                                  .topk(std::min<std::int64_t>(choice.n_blocks, length), 1);
  anchors = places;

  // The places of anchors and drafted tokens; some may be after the sequence's end.
  const Tensor wanted = places.unsqueeze(-1) + torch::arange(n_followed + 1, places.options());
  const Tensor there = wanted.clamp_max(length - 1);
  const auto at = [&](const Tensor& of) {
    return of.gather(1, there.flatten(1)).view(there.sizes());
  };
  tokens = at(text);
  const Tensor counted = at(text_weights) * (wanted < length);
  const Tensor row_weights = counted.narrow(-1, 1, n_followed);
  weights = row_weights * (row_weights > 0).cumprod(-1) * (best >= 0).unsqueeze(-1);
  const Tensor first_rows = torch::arange(n_sequences, places.options()).view({-1, 1, 1}) * length;
  judges = (there.narrow(-1, 0, n_followed) + first_rows).flatten();
}

}  // namespace outrider::train
