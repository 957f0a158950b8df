// SPDX-License-Identifier: Apache-2.0
// Manual pages of a program and its commands, in the macros of man(7).
#ifndef OUTRIDER_APPS_CLI_MANUAL_PAGES_H_
#define OUTRIDER_APPS_CLI_MANUAL_PAGES_H_

#include <string>
#include <vector>

#include "apps/cli/command_tree.h"

namespace outrider::cli {

struct ManualPage {
  std::string file;  // "outrider-train-lm.1"
  std::string text;
};

// One page for the program and one for each of its commands. `version` and `date` ("2026-01-31")
// are printed in the margins.
std::vector<ManualPage> manual_pages(const CommandDescription& program, const std::string& version,
                                     const std::string& date);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_MANUAL_PAGES_H_
