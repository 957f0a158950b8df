// What a rendering may cost at most, whatever the template and its variables are.
#ifndef OUTRIDER_CHAT_TEMPLATE_LIMITS_H_
#define OUTRIDER_CHAT_TEMPLATE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace outrider::jinja {

struct Limits {
  // Evaluated nodes of the syntax tree, and whatever else takes time in proportion (items that a
  // filter goes over, each 256 bytes of text that an operation reads). The templates of published
  // models take 50 to 2,000 a message: this is enough for 25,000 messages, and some seconds.
  std::int64_t n_steps = 50'000'000;
  // The longest text that a template may put together, its output included.
  std::size_t text_bytes = std::size_t{64} << 20;
  // All objects that a rendering makes; they stay until its end. Templates copy each message a few
  // times, so that this is a hundred times what fits the largest contexts.
  std::size_t memory_bytes = std::size_t{1} << 30;
};

// Nested values (lists in lists), as JSON that is read or as a template makes them.
inline constexpr int kDeepestValue = 200;
// Nested nodes of a syntax tree. Published templates reach 20.
inline constexpr int kDeepestSyntax = 300;
// Nested evaluations: calls of macros within macros, each of which is a few of them. A level takes
// less than a kilobyte of stack, and some four under AddressSanitizer.
inline constexpr int kDeepestEvaluation = 1000;
// As the sandbox of Jinja has it.
inline constexpr std::int64_t kLongestRange = 100'000;

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_LIMITS_H_
