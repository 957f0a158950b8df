// SPDX-License-Identifier: Apache-2.0
// JSON texts as parts of a grammar: docs/grammar.md describes their spelling.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_JSON_PARTS_H_
#define OUTRIDER_GRAMMAR_SCHEMA_JSON_PARTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/parts.h"

namespace outrider {

// Shared rules are made on first use. Not thread-safe.
class JsonParts {
 public:
  explicit JsonParts(GrammarParts& parts) : parts_(parts) {}

  // White space between tokens of JSON: nothing, a blank, or a new line and up to 32 blanks.
  int blank();
  int value();                   // any
  int object();                  // any
  int array();                   // any
  int string();                  // any, with all of JSON's escapes
  int string(int min, int max);  // of min to max characters
  int number();                  // any with at most 16 digits before and after the point
  int integer();                 // of at most 18 digits
  int boolean();
  int null() { return parts_.text("null"); }

  // One character of a set within a string, in a unique spelling: as itself, or escaped if JSON
  // demands it.
  int character(const CodePoints& set);
  // A string whose content is a part made of character()s.
  int quoted(int content);
  int quoted(std::string_view content);  // UTF-8
  // A key other than these names, unescaped, without characters that would need escapes.
  int other_key(std::vector<std::string> names);

  // An object: members in this order, each with its key before the colon. After them, if `other` is
  // a part, any number of members that it matches.
  struct Member {
    int key = -1;    // a part
    int value = -1;  // a part
    bool required = false;
  };
  static constexpr int kNone = -1;
  int object_of(std::span<const Member> members, int other);
  int member(int key, int value);

  // An array: first the parts of `first`, then any number of `rest` (kNone: none); `min` to
  // `max` items in all.
  int array_of(std::span<const int> first, int rest, int min, int max);

 private:
  int any_character();
  int without(std::span<const std::string> names, std::size_t depth);

  GrammarParts& parts_;
  int blank_ = kNone;
  int value_ = kNone;
  int object_ = kNone;
  int array_ = kNone;
  int string_ = kNone;
  int character_ = kNone;
  int number_ = kNone;
  int integer_ = kNone;
  int rest_of_key_ = kNone;
};

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_JSON_PARTS_H_
