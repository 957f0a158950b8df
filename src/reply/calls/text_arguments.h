// SPDX-License-Identifier: Apache-2.0
// The arguments of a call that a model writes one by one, each a key and a text, passed on as a
// JSON object. A text whose schema allows only texts is passed on as it comes; others are read
// completely, since they become JSON values by their schemas.
#ifndef OUTRIDER_REPLY_CALLS_TEXT_ARGUMENTS_H_
#define OUTRIDER_REPLY_CALLS_TEXT_ARGUMENTS_H_

#include <string>
#include <string_view>

#include "reply/argument_schema.h"
#include "reply/calls/call_reader.h"
#include "reply/json_words.h"
#include "reply/tool_set.h"

namespace outrider {

class TextArguments {
 public:
  // strips: drops blanks around a value, unless it can only be a text.
  explicit TextArguments(bool strips) : strips_(strips) {}

  // `tool` (null: an unknown one) must outlive the object.
  void begin(const Tool* tool, CallSink& sink) {
    tool_ = tool;
    n_ = 0;
    sink.add_arguments("{");
  }

  void begin_value(std::string_view key, CallSink& sink) {
    sink.add_arguments((n_++ == 0 ? "" : ", ") + as_json_string(key) + ": ");
    schema_ = argument_schema(tool_, key);
    streams_ = is_text(schema_);
    if (streams_) sink.add_arguments("\"");
    text_.clear();
  }

  void add(std::string_view text, CallSink& sink) {
    if (!streams_) {
      text_ += text;
      return;
    }
    std::string escaped;
    for (const char each : text) append_escaped(each, escaped);
    if (!escaped.empty()) sink.add_arguments(escaped);
  }

  void end_value(CallSink& sink) {
    const std::string_view text = strips_ ? without_blanks(text_) : text_;
    sink.add_arguments(streams_ ? "\"" : argument_value(text, schema_));
  }

  void end(CallSink& sink) { sink.add_arguments("}"); }

 private:
  bool strips_;
  const Tool* tool_ = nullptr;
  int n_ = 0;
  ArgumentSchema schema_;
  bool streams_ = false;
  std::string text_;  // of a value that is not passed on as it comes
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALLS_TEXT_ARGUMENTS_H_
