// SPDX-License-Identifier: Apache-2.0
// make_tiny_pair DIRECTORY: writes DIRECTORY/target and DIRECTORY/draft, two random models with a
// common tokenizer. The second is the first plus noise: a pair to try speculation on without a real
// one. Their texts have no meaning.
#include <cstdio>
#include <exception>
#include <filesystem>

#include "tests/support/models/tiny_pair.h"

int main(int n_arguments, char** arguments) {
  if (n_arguments != 2) {
    std::fprintf(stderr, "usage: make_tiny_pair DIRECTORY\n");
    return 2;
  }
  try {
    outrider::test::write_tiny_pair(arguments[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_tiny_pair: %s\n", error.what());
    return 1;
  }
  return 0;
}
