// SPDX-License-Identifier: Apache-2.0
// A comparison of methods whose results can be computed by hand.
#ifndef OUTRIDER_TESTS_SUPPORT_MADE_COMPARISON_H_
#define OUTRIDER_TESTS_SUPPORT_MADE_COMPARISON_H_

#include "outrider/method_report.h"

namespace outrider::test {

// Plain decoding: a tenth of a second for each token.
inline MethodSample plain_sample(int n_tokens) {
  MethodSample sample;
  sample.emitted = sample.target_passes = n_tokens;
  sample.decode_seconds = n_tokens * 0.1;
  sample.target_seconds = n_tokens * 0.09;
  sample.first_token_seconds = 0.1;
  sample.request_seconds = sample.decode_seconds + 0.1;
  sample.outcomes = {{.levels = 0, .nodes = 0, .accepted = 0, .n = n_tokens}};
  return sample;
}

// Chains of two. For the easy prompt one token of each is accepted, which is twice as fast. For the
// hard one none is accepted, and it takes 2.5 seconds instead of 2.
inline MethodComparison made_comparison() {
  MethodComparison comparison;
  comparison.version = "1.2.3";
  comparison.machine = {.processor = "a processor",
                        .n_processors = 2,
                        .memory_bytes = 8'000'000'000,
                        .system = "a system"};
  comparison.files = {{.path = "models/target", .bytes = 1000},
                      {.path = "models/draft <&>", .bytes = 10}};
  comparison.options.methods = read_methods("eagle:models/draft <&>@chain:length=2");
  comparison.options.prompts = {
      {.set = "set", .id = "1", .category = "easy", .topic = "easy", .turns = {"A"}},
      {.set = "set", .id = "2", .category = "hard, \"very\"", .topic = "hard", .turns = {"B"}}};
  PassCosts passes;
  const auto add_pass = [&passes](int rows, double seconds) {
    passes.passes.push_back({.rows = rows,
                             .seconds = {.median = seconds, .min = seconds, .max = seconds},
                             .ratio = seconds / 0.010});
  };
  add_pass(1, 0.010);
  add_pass(2, 0.011);
  add_pass(4, 0.013);
  add_pass(8, 0.021);
  comparison.passes = passes;
  comparison.pass_context = 40;

  MethodSample easy = plain_sample(10);
  easy.target_passes = 5;
  easy.drafted = 10;
  easy.decode_seconds = 0.5;
  easy.draft_seconds = 0.1;
  easy.target_seconds = 0.3;
  easy.verify_seconds = 0.05;
  easy.first_token_seconds = 0.2;
  easy.request_seconds = 0.7;
  easy.outcomes = {{.levels = 2, .nodes = 2, .accepted = 1, .n = 5}};
  MethodSample hard = plain_sample(20);
  hard.drafted = 40;
  hard.decode_seconds = 2.5;
  hard.draft_seconds = 0.5;
  hard.target_seconds = 1.5;
  hard.verify_seconds = 0.25;
  hard.first_token_seconds = 0.2;
  hard.request_seconds = 2.7;
  hard.outcomes = {{.levels = 2, .nodes = 2, .accepted = 0, .n = 20}};
  comparison.rounds = {
      {.prompt = 0, .temperature = 0, .repeat = 0, .samples = {plain_sample(10), easy}},
      {.prompt = 1, .temperature = 0, .repeat = 0, .samples = {plain_sample(20), hard}}};
  return comparison;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MADE_COMPARISON_H_
