// SPDX-License-Identifier: Apache-2.0
#include "train/batches/mask_choice.h"

#include <fmt/format.h>

#include "outrider/error.h"

namespace outrider::train {

void require_valid(const MaskChoice& choice, const char* command, const char* tokens_flag) {
  if (choice.n_drafted < 2) {
    throw UsageError(command, tokens_flag, "at least 2", fmt::format("{}", choice.n_drafted));
  }
  const auto require_share = [&](double share, const char* flag) {
    if (share > 0 && share <= 1) return;
    throw UsageError(command, flag, "a number above 0, at most 1", fmt::format("{}", share));
  };
  require_share(choice.keep, "keep");
  require_share(choice.min_share, "least-share");
}

}  // namespace outrider::train
