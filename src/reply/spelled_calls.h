// Calls as a model of a form writes them: for templates that do not show earlier calls.
#ifndef OUTRIDER_REPLY_SPELLED_CALLS_H_
#define OUTRIDER_REPLY_SPELLED_CALLS_H_

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
  nlohmann::ordered_json arguments;  // an object
};

struct SpelledCalls {
  std::string text;
  std::vector<TextRange> markers = {};  // in ascending order; all else is what the calls say
};

// What ReplyParser reads as these calls. nullopt: no form of calls is known, one of several markers
// (tagged with parameters, paired, bareword), whose templates all show calls, or one of messages.
// Throws Error for a call without a name.
std::optional<SpelledCalls> spelled_calls(const ReplyFormat& format,
                                          std::span<const SpelledCall> calls);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_SPELLED_CALLS_H_
