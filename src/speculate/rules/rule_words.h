// SPDX-License-Identifier: Apache-2.0
// Words and bounds that the descriptions of rules share.
#ifndef OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_
#define OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace outrider {

// Above all entropies, prices and distances of any model: log(vocabulary) is below 15.
inline constexpr double kLargestNats = 1000;

// Values of SpecDescription::needs for rules.
inline constexpr const char* kAnyDrafter = "any drafter";
inline constexpr const char* kDistributions = "distributions";

inline std::string command_with(std::string_view rule) {
  return fmt::format(
      "outrider generate --model LARGE --draft SMALL --prompt \"Once upon a time\" \\\n"
      "    --rule {}",
      rule);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_
