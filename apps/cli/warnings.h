// SPDX-License-Identifier: Apache-2.0
// Prints warnings about files that were read in spite of a doubt, on standard error.
#ifndef OUTRIDER_APPS_CLI_WARNINGS_H_
#define OUTRIDER_APPS_CLI_WARNINGS_H_

#include <memory>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"

namespace outrider::cli {

// One line each: "outrider: warning: ...".
void print_warnings(const std::vector<std::string>& warnings);

// Tokenizer::load; prints its warnings.
std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_WARNINGS_H_
