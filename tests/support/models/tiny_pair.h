// SPDX-License-Identifier: Apache-2.0
// A random target model and a drafter whose tokens are right about half the time.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_TINY_PAIR_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_TINY_PAIR_H_

#include <filesystem>

#include "tests/support/models/tiny_model.h"

namespace outrider::test {

struct TinyPair {
  TinyModel target;
  TinyModel draft;
};

// The drafter is the target with noise; running it costs as much. (llama_test.cc measures how often
// the two agree.)
TinyPair make_tiny_pair();

// Writes the pair as directory/target and directory/draft, in the Hugging Face format.
void write_tiny_pair(const std::filesystem::path& directory);

// Writes thirty texts of a few tokens each, with a "|" after each.
void write_tiny_texts(const std::filesystem::path& file);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_TINY_PAIR_H_
