// SPDX-License-Identifier: Apache-2.0
// Spec strings: name:value,value,...,key=value,... (a drafter, a rule, a tree).
#ifndef OUTRIDER_BASE_SPEC_H_
#define OUTRIDER_BASE_SPEC_H_

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outrider/spec_description.h"

namespace outrider {

// "model:PATH,confidence=0.4" -> name "model", value "PATH", keys {confidence: 0.4}. Values come
// before keys; a part is a value unless it is a key=value whose key is a plain word. A backslash
// takes the next character literally.
class Spec {
 public:
  // `what` names the kind of spec in error messages ("drafter", "rule", "tree"). Throws UsageError
  // on an empty name or a value after a key.
  static Spec parse(std::string_view what, std::string_view text);

  const std::string& name() const { return name_; }
  // The one value, empty if none is given. Throws UsageError if there are several.
  const std::string& value() const;
  // The same for names that need one. Throws UsageError if there is none; `form` is how the spec is
  // written ("model:PATH").
  const std::string& required_value(std::string_view form) const;
  // For names that take a list. "name:" alone has one empty value.
  const std::vector<std::string>& values() const { return values_; }

  // Throws UsageError, with the known names, if the name is not among them.
  void require_name(const std::vector<std::string_view>& known) const;
  // Throws UsageError if there is a value, for names that take none.
  void require_no_value() const;
  // Throws UsageError for a key that is not among `known`, or is given twice and is not among
  // `repeatable`.
  void require_keys(const std::vector<std::string_view>& known,
                    const std::vector<std::string_view>& repeatable = {}) const;
  // The same by descriptions: a key without a description is refused.
  void require_described_keys(std::span<const KeyDescription> known) const;

  // The number of a key, nullopt if it is not given. Throws UsageError if it is not a number or
  // outside [min, max]; NaN is outside.
  std::optional<double> number(std::string_view key, double min, double max) const;
  std::optional<int> integer(std::string_view key, int min, int max) const;
  // The text of a key, nullopt if it is not given.
  std::optional<std::string> text(std::string_view key) const;
  // The texts of a key that may be given several times, in order.
  std::vector<std::string> texts(std::string_view key) const;
  // The same, one of `known`. Throws UsageError, with these, for another.
  std::optional<std::string> choice(std::string_view key,
                                    std::initializer_list<std::string_view> known) const;
  // This spec with the key set to another value, placed last.
  std::string with(std::string_view key, std::string_view value) const;
  // This spec without a key.
  std::string without(std::string_view key) const;
  // values() as whole numbers. Throws UsageError if one is not whole or outside [min, max].
  std::vector<int> integers(int min, int max) const;

 private:
  double to_number(std::string_view what, const std::string& text, double min, double max) const;
  int to_integer(std::string_view what, double value) const;

  std::string what_;
  std::string text_;
  std::string name_;
  std::vector<std::string> values_;
  std::vector<std::pair<std::string, std::string>> keys_;
};

// The specs of a list, "A,B" or "A+B", separated at unescaped separators. At commas the parts stay
// as written, since each spec resolves its own escapes, and a key=value continues the spec before
// it: "ngram:min=2,max=4,suffix" has two specs. A plus sign has no meaning within a spec, so its
// backslash is removed here: a part may itself be a list joined by plus signs. An empty list has no
// parts.
std::vector<std::string> split_specs(std::string_view list, char separator);

}  // namespace outrider

#endif  // OUTRIDER_BASE_SPEC_H_
