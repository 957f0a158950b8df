// JSON texts as parts of a grammar: docs/grammar.md says how they are spelled.
#ifndef OUTRIDER_GRAMMAR_JSON_PARTS_H_
#define OUTRIDER_GRAMMAR_JSON_PARTS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/parts.h"

namespace outrider {

// Rules that many parts need are made when they are first asked for. Not thread-safe.
class JsonParts {
 public:
  explicit JsonParts(GrammarParts& parts) : parts_(parts) {}

  // Between the signs of a text: nothing, a blank, or a new line and up to 32 blanks.
  int blank();
  int value();                      // any
  int object();                     // any
  int array();                      // any
  int string();                     // any, escapes in every way that JSON has
  int string(int least, int most);  // of so many characters
  int number();                     // any of at most 16 digits before and behind the point
  int integer();                    // of at most 18 digits
  int boolean();
  int null() { return parts_.text("null"); }

  // One character of a set within a string, spelled in the one way that this writes it: as itself,
  // or escaped where JSON demands it.
  int character(const CodePoints& set);
  // A string whose characters a part of character()s makes.
  int quoted(int content);
  int quoted(std::string_view content);  // UTF-8
  // A key that is none of these, as itself, without characters that would have to be escaped.
  int other_key(std::vector<std::string> names);

  // An object: members in their order, each with what is written before its colon. Behind them, if
  // `other` is a part, any number of members that it makes.
  struct Member {
    int key = -1;    // a part
    int value = -1;  // likewise
    bool required = false;
  };
  static constexpr int kNone = -1;
  int object_of(std::span<const Member> members, int other);
  int member(int key, int value);

  // An array: first the parts of `first`, then any number of `rest` (kNone: nothing); of at least
  // `least` and at most `most` items altogether.
  int array_of(std::span<const int> first, int rest, int least, int most);

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

#endif  // OUTRIDER_GRAMMAR_JSON_PARTS_H_
