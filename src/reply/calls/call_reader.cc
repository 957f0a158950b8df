// SPDX-License-Identifier: Apache-2.0
#include "reply/calls/call_reader.h"

#include <algorithm>

namespace outrider {

bool CallReader::match(MarkerFinder& finder, char byte, std::optional<std::size_t>& found) {
  std::string other;
  found = finder.push(byte, other);
  if (other.empty()) return true;
  finder.release();
  return false;
}

std::unique_ptr<CallReader> make_call_reader(const CallContext& context) {
  switch (context.format->syntax) {
    case CallSyntax::named:
      return make_named_calls(context);
    case CallSyntax::fenced:
      return make_fenced_calls(context);
    case CallSyntax::tagged:
      return make_tagged_calls(context);
    case CallSyntax::paired:
      return make_paired_calls(context);
    case CallSyntax::python:
      return make_python_calls(context);
    case CallSyntax::bareword:
      return make_bareword_calls(context);
    default:
      return make_json_calls(context);
  }
}

bool is_call_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName_bytes &&
         std::none_of(text.begin(), text.end(), [](char byte) {
           return static_cast<unsigned char>(byte) <= ' ' || byte == '\x7f';
         });
}

}  // namespace outrider
