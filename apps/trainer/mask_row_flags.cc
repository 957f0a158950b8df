// SPDX-License-Identifier: Apache-2.0
#include "apps/trainer/mask_row_flags.h"

#include <fmt/format.h>

#include "apps/cli/flag_values.h"

namespace outrider::cli {

void add_mask_row_flags(CLI::App& command, train::MaskChoice& rows, const std::string& group) {
  add_real(command, "--keep", rows.keep, {0, false, 1, true, "a number above 0, at most 1"},
           fmt::format("The kth token of a draft is learned at this share to the k - 1 of all "
                       "places (default: {})",
                       rows.keep))
      ->group(group);
  add_real(command, "--least-share", rows.min_share,
           {0, false, 1, true, "a number above 0, at most 1"},
           fmt::format("But at this share of them at least (default: {})", rows.min_share))
      ->group(group);
}

}  // namespace outrider::cli
