// SPDX-License-Identifier: Apache-2.0
#include "model/prefill.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace outrider {

void prefill(LanguageModel& model, Sequence& sequence, std::span<const TokenId> tokens,
             ForwardOutput& output, std::span<const int> feature_layers) {
  std::vector<int> path;
  while (!tokens.empty()) {
    const std::size_t n_rows = std::min<std::size_t>(tokens.size(), kPrefillRows);
    const TokenBlock block{.sequence = &sequence, .tokens = tokens.first(n_rows), .parents = {}};
    model.forward(
        {&block, 1},
        {.logits = {.kind = RowSet::Kind::none, .rows = {}}, .feature_layers = feature_layers},
        output);
    path.resize(n_rows);
    std::iota(path.begin(), path.end(), 0);
    sequence.keep(path);
    tokens = tokens.subspan(n_rows);
  }
}

}  // namespace outrider
