// SPDX-License-Identifier: Apache-2.0
// Writes calls in a model's form, for templates that do not show earlier calls.
#ifndef OUTRIDER_REPLY_CALLS_SPELLED_CALLS_H_
#define OUTRIDER_REPLY_CALLS_SPELLED_CALLS_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"
#include "reply/reply_format.h"

namespace outrider {

struct SpelledCall {
  std::string name;
  // An object; or a text for invalid arguments, written in place of the JSON.
  nlohmann::ordered_json arguments;
};

struct SpelledCalls {
  std::string text;
  std::vector<TextRange> markers = {};  // ascending; all else is content of the calls
};

// Text that ReplyParser reads as these calls if their arguments are objects; JSON has blanks after
// commas and colons, as in templates. nullopt if the form of calls is unknown, has several markers
// (tagged with parameters, paired, bareword; their templates all show calls) or messages, or if a
// tool's or argument's name cannot be spelled.
std::optional<SpelledCalls> spelled_calls(const ReplyFormat& format,
                                          std::span<const SpelledCall> calls);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALLS_SPELLED_CALLS_H_
