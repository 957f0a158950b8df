// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/warnings.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/cli/terminal.h"

namespace outrider::cli {

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) {
    fmt::print(stderr, "outrider: warning: {}\n", one_line(warning));
  }
}

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& path) {
  std::shared_ptr<const Tokenizer> tokenizer = Tokenizer::load(path);
  print_warnings(tokenizer->warnings());
  return tokenizer;
}

}  // namespace outrider::cli
