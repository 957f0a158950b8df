// SPDX-License-Identifier: Apache-2.0
// Strings that the descriptions of rules and acceptances share (SpecDescription), and a bound of
// their options.
#ifndef OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_
#define OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace outrider {

// The largest value of an option that is an entropy, a loss, a price or a divergence, in nats. An
// entropy is at most log(vocabulary), below 15. No -log of a positive double exceeds 745.
inline constexpr double kLargestNats = 1000;

// Values of SpecDescription::needs: a rule works with any drafter, or only with one that gives
// distributions.
inline constexpr const char* kAnyDrafter = "any drafter";
inline constexpr const char* kDistributions = "distributions";

// A command for SpecDescription::example. `rule` is a spec that needs no quotes in a shell.
inline std::string command_with_rule(std::string_view rule) {
  return fmt::format(
      "outrider generate --model LARGE --draft SMALL --prompt \"Once upon a time\" \\\n"
      "    --rule {}",
      rule);
}

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_RULES_RULE_WORDS_H_
