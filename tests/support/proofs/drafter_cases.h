// SPDX-License-Identifier: Apache-2.0
// The drafters that the contract suite runs, one line each. The suite fails for a drafter that is
// in the registry but not here.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_CASES_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_CASES_H_

namespace outrider::test {

// A drafter supplied by the program (own_drafters.h).
enum class Own { none, named, drawn };

struct DrafterCase {
  const char* name;  // of its tests and of its section in tests/golden/coverage.txt
  // What a user writes, with {draft} and {other} for small models, {foreign} for one of another
  // vocabulary, {text} for a text file, {store} for a datastore, and {eagle}, {eagle3}, {peagle},
  // {medusa}, {dflash}, {dspark}, {module} and {assistant} for heads on the target.
  const char* spec;
  // It reads the target's layers. Proofs by enumeration then run it on a model in files, and not on
  // a table of logits.
  bool reads_target = false;
  // Its draft is a function of the text so far. Drafters that remember earlier rounds or other
  // texts do not have this property: their draft is a function of everything they were given.
  bool context_determined = true;
  // On random models its drafts are accepted so rarely that the suite does not require a text that
  // ends inside a draft.
  bool seldom_right = false;
  Own own = Own::none;
};

inline constexpr DrafterCase kDrafterCases[] = {
    {"model", "model:{draft}"},
    {.name = "scheduled",
     .spec = "model:{draft},length=2,schedule=heuristic",
     .context_determined = false},
    {"translated", "model:{foreign},vocabulary=shared"},
    // It ignores the bias that restricts the suite's texts to a few characters.
    {.name = "retokenized", .spec = "model:{foreign},vocabulary=text", .seldom_right = true},
    {"pard", "pard:{draft},mask=2"},
    {"eagle", "eagle:{eagle}", /*reads_target=*/true},
    {"eagle3", "eagle:{eagle3}", /*reads_target=*/true},
    {"peagle", "eagle:{peagle}", /*reads_target=*/true},
    {"medusa", "medusa:{medusa}", /*reads_target=*/true},
    {"dflash", "dflash:{dflash}", /*reads_target=*/true},
    {"dspark", "dspark:{dspark},accept=0.3", /*reads_target=*/true},  // ends some paths, not all
    {"mtp", "mtp", /*reads_target=*/true},
    {"module", "mtp:{module}", /*reads_target=*/true},  // a single module, applied repeatedly
    {"assistant", "mtp:{assistant}", /*reads_target=*/true},
    {"ngram", "ngram:min=1,max=3,length=8"},
    {"reference", "reference:file={text},min=1"},
    {"suffix", "suffix:length=8,total=12"},
    {"retrieval", "retrieval:path={store}"},
    {"auto", "auto:ngram:min=2,max=3,length=4,model:{draft}"},
    {"first", "first:ngram:min=2,max=3,length=4,model:{draft}"},
    {"merge", "merge:model:{draft}+ngram:min=1,max=3,length=4"},
    {"relay", "relay:model:{draft},length=2+ngram:min=1,max=3,length=3"},
    {"relayed", "relay:model:{draft},length=1+model:{other},length=2"},
    {"staged", "staged:model:{draft}+ngram:min=1,max=3,length=4"},
    {"cascade", "cascade:token-v3:alpha=0.4+model:{draft}+model:{other}"},
    // Its positions are counted from the end of the prompt.
    {.name = "spoiled",
     .spec = "spoiled:tokens:from=2,to=3+model:{draft}",
     .context_determined = false},
    {.name = "lookahead",
     .spec = "lookahead:window=3,ngram=2,guesses=2",
     .context_determined = false,
     .seldom_right = true},
    {.name = "recycling", .spec = "recycling:k=3", .context_determined = false},
    {.name = "layerskip", .spec = "layerskip:layers=1", .reads_target = true},
    {.name = "jacobi",
     .spec = "jacobi:length=3",
     .context_determined = false,
     .seldom_right = true},
    {.name = "own", .spec = "own:length=4,total=6", .own = Own::named},
    {.name = "drawn", .spec = "own:drawn,length=2,total=3", .own = Own::drawn},
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_CASES_H_
