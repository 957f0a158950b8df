// A random target model and a drafter that is right about half the time.
#ifndef OUTRIDER_TESTS_SUPPORT_TINY_PAIR_H_
#define OUTRIDER_TESTS_SUPPORT_TINY_PAIR_H_

#include <filesystem>

#include "tests/support/tiny_model.h"

namespace outrider::testing {

struct TinyPair {
  TinyModel target;
  TinyModel draft;
};

// The drafter is the target with noise, and costs as much to run. (llama_test.cc measures how often
// the two agree.)
TinyPair make_tiny_pair();

// The pair as directory/target and directory/draft, in the Hugging Face form.
void write_tiny_pair(const std::filesystem::path& directory);

// Thirty texts of a few tokens each, a "|" behind every one.
void write_tiny_texts(const std::filesystem::path& file);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_TINY_PAIR_H_
