// SPDX-License-Identifier: Apache-2.0
// Limits of the cost of a rendering, for any template and variables.
#ifndef OUTRIDER_CHAT_TEMPLATE_LIMITS_H_
#define OUTRIDER_CHAT_TEMPLATE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace outrider::jinja {

struct Limits {
  // Evaluated nodes of the syntax tree, and all other work that takes proportional time (items that
  // a filter processes, each 256 bytes of text that an operation reads). Templates of published
  // models take 50 to 2,000 a message: the limit allows 25,000 messages, and some seconds.
  std::int64_t n_steps = 50'000'000;
  // The longest text that a template may build, including its output.
  std::size_t text_bytes = std::size_t{64} << 20;
  // All objects of a rendering, which are kept until its end. Templates copy each message a few
  // times, so this is a hundred times what fits the largest contexts.
  std::size_t memory_bytes = std::size_t{1} << 30;
};

// Nested values (lists in lists), in JSON input or made by a template.
inline constexpr int kDeepestValue = 200;
// Nested nodes of a syntax tree. Published templates reach 20.
inline constexpr int kDeepestSyntax = 300;
// Nested evaluations: calls of macros within macros, each of which counts as several. A level takes
// less than a kilobyte of stack, and about four under AddressSanitizer.
inline constexpr int kDeepestEvaluation = 1000;
// As in Jinja's sandbox.
inline constexpr std::int64_t kLongestRange = 100'000;

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_LIMITS_H_
