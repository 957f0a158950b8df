// SPDX-License-Identifier: Apache-2.0
// The arguments of a call in the form of one JSON object, passed on as they come.
#ifndef OUTRIDER_REPLY_CALLS_JSON_ARGUMENTS_H_
#define OUTRIDER_REPLY_CALLS_JSON_ARGUMENTS_H_

#include <string>

#include "reply/calls/call_reader.h"
#include "reply/json_scanner.h"

namespace outrider {

class JsonArguments {
 public:
  // Takes the next byte of a call that has begun. The object's last byte (done) ends the call.
  JsonScanner::Step push(char byte, CallSink& sink) {
    std::string piece;
    const JsonScanner::Step step = scanner_.push(byte, piece);
    if (step == JsonScanner::Step::wrong) return step;
    sink.add_arguments(piece);
    if (step == JsonScanner::Step::done) sink.end_call({});
    return step;
  }

 private:
  JsonScanner scanner_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_CALLS_JSON_ARGUMENTS_H_
