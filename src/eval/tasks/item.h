// SPDX-License-Identifier: Apache-2.0
// One item of a data set, and templates filled from its fields.
#ifndef OUTRIDER_EVAL_TASKS_ITEM_H_
#define OUTRIDER_EVAL_TASKS_ITEM_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outrider::eval {

struct Item {
  int number = 0;         // counted from 0, unreadable ones included
  std::string place;      // "FILE, line 17", for messages
  nlohmann::json fields;  // an object

  // The value of a field, or of a member of one: "question", "answer.aliases", "turns.0". Null if
  // there is none. Also finds a field whose name contains dots.
  const nlohmann::json* find(std::string_view path) const;
};

// A field as text: a string itself, a number or boolean as in JSON, a list of such with one per
// line. Empty for null, objects and lists that contain them. (An empty list is an empty text.)
std::optional<std::string> text_of(const nlohmann::json& value);

// Text with fields in braces: "Q: {question}\nA:". Two braces give one. Immutable.
class Template {
 public:
  Template() = default;
  // Throws Error, with `object`, for an unmatched or empty pair of braces.
  static Template parse(std::string_view text, std::string_view object);

  // Throws Error with the item and the field if a field is missing or is not text. Fields in `more`
  // have priority over the item's.
  std::string render(
      const Item& item,
      const std::vector<std::pair<std::string_view, std::string_view>>& more = {}) const;

  bool empty() const { return parts_.empty(); }
  bool has_field(std::string_view field) const;

 private:
  struct Part {
    std::string text;
    bool is_field;
  };
  std::vector<Part> parts_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TASKS_ITEM_H_
