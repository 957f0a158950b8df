// Which drafters and rules there are, in words: what `outrider drafters` and `outrider rules`
// print.
#ifndef OUTRIDER_SPEC_DESCRIPTION_H_
#define OUTRIDER_SPEC_DESCRIPTION_H_

#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// A key of a spec, such as `length` in "ngram:length=5".
struct KeyDescription {
  std::string name = {};
  std::string value = {};          // what stands behind it: "K", "latest|first"
  std::string default_value = {};  // empty: the spec is refused without this key
  std::string meaning = {};        // a sentence
  std::string example = {};        // a whole spec that gives the key
  bool repeatable = false;         // it may be given several times
};

// A kind of drafter (SpeculationOptions::drafter) or of rule (SpeculationOptions::rule).
struct SpecDescription {
  std::string name = {};     // what its specs begin with
  std::string form = {};     // its shortest spec, with letters for values: "model:PATH"
  std::string summary = {};  // what it is, a few words
  std::string needs = {};    // beside the target: "nothing", "a model", "heads"; a rule's drafter
  std::string about = {};    // what it does, a few sentences
  std::vector<KeyDescription> keys = {};  // all that it takes
  std::string source = {};                // where it was published
  std::string pays = {};                  // when to take it, a few sentences
  std::string example = {};               // a command line, perhaps of several lines
};

// In the order of docs/drafters.md. "none", which drafts nothing, is not among them.
std::vector<SpecDescription> known_drafters();
// In the order of docs/cascades.md, beginning with "exact".
std::vector<SpecDescription> known_rules();

// A text, a path say, as a spec's value: what specs read as punctuation gets a backslash.
std::string escape_spec_value(std::string_view value);

}  // namespace outrider

#endif  // OUTRIDER_SPEC_DESCRIPTION_H_
