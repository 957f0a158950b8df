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
  // An object, or a text that stands where its JSON would: what a model wrote that is none.
  nlohmann::ordered_json arguments;
};

struct SpelledCalls {
  std::string text;
  std::vector<TextRange> markers = {};  // in ascending order; all else is what the calls say
};

// What ReplyParser reads as these calls, where their arguments are objects; JSON has blanks behind
// commas and colons, as templates write it. nullopt: no form of calls is known, it is one of
// several markers (tagged with parameters, paired, bareword), whose templates all show calls, or
// one of messages; or a name cannot be spelled, of a tool or an argument.
std::optional<SpelledCalls> spelled_calls(const ReplyFormat& format,
                                          std::span<const SpelledCall> calls);

}  // namespace outrider

#endif  // OUTRIDER_REPLY_SPELLED_CALLS_H_
