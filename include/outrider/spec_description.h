// SPDX-License-Identifier: Apache-2.0
// Descriptions of all drafters and rules, as `outrider drafters` and `outrider rules` print them.
// Thread-safe.
#ifndef OUTRIDER_SPEC_DESCRIPTION_H_
#define OUTRIDER_SPEC_DESCRIPTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// A key of a spec, such as `length` in "ngram:length=5".
struct KeyDescription {
  std::string name = {};
  std::string value = {};          // the form of its value: "K", "latest|first"
  std::string default_value = {};  // empty: the key is required
  std::string meaning = {};        // a sentence
  std::string example = {};        // a whole spec that gives the key
  bool repeatable = false;         // it may be given several times
};

// A kind of drafter (SpeculationOptions::drafter) or of rule (SpeculationOptions::rule).
struct SpecDescription {
  std::string name = {};     // the first word of its specs
  std::string form = {};     // its shortest spec, with letters for values: "model:PATH"
  std::string summary = {};  // what it is, a few words
  std::string needs = {};  // besides the target: "nothing", "a model", "heads"; or a rule's drafter
  std::string about = {};  // what it does, a few sentences
  std::vector<KeyDescription> keys = {};  // all keys
  std::string source = {};                // where it was published
  std::string pays = {};                  // when to use it, a few sentences
  std::string example = {};               // a command line, possibly of several lines
};

// In the order of docs/drafters.md, without "none".
std::vector<SpecDescription> known_drafters();
// In the order of docs/cascades.md, beginning with "exact".
std::vector<SpecDescription> known_rules();

// Escapes a text, such as a path, for use as a spec's value: puts a backslash before the specs'
// punctuation.
std::string escape_spec_value(std::string_view value);

}  // namespace outrider

#endif  // OUTRIDER_SPEC_DESCRIPTION_H_
