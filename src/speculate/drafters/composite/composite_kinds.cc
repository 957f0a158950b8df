// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/composite/composite_kinds.h"

#include <string>
#include <vector>

#include "speculate/drafters/composite/auto_drafter.h"
#include "speculate/drafters/composite/cascade_drafter.h"
#include "speculate/drafters/composite/first_drafter.h"
#include "speculate/drafters/composite/merge_drafter.h"
#include "speculate/drafters/composite/relay_drafter.h"
#include "speculate/drafters/composite/spoiled_drafter.h"
#include "speculate/drafters/composite/staged_drafter.h"
#include "speculate/registry/drafter_keys.h"

namespace outrider {
namespace {

DrafterKind first_kind() {
  return {
      .description =
          {.name = "first",
           .form = "first:A,B,...",
           .summary = "the first of these that has a draft",
           .needs = "its parts",
           .about = "The parts are asked in their order, and the first draft that is not empty is "
                    "taken. Each part has its own keys; a key=value belongs to the part before it.",
           .source = "This project (docs/drafters.md).",
           .pays = "With a drafter in front that is nearly free and often silent, such as an "
                   "index, and a model behind it.",
           .example = "outrider generate --model TARGET \\\n"
                      "    --drafter first:ngram:min=3,max=5,model:SMALL --prompt-file notes.txt"},
      .read_parts = read_first_drafter,
      .joined_by = ','};
}

DrafterKind auto_kind() {
  return {
      .description =
          {.name = "auto",
           .form = "auto[:A,B,...]",
           .summary = "of these the one that pays most",
           .needs = "its parts",
           .about = "auto alone has for parts suffix and what the model brings: modules behind "
                    "its layers (mtp), heads in folders of its directory. Each round "
                    "drafts by the part that is expected to bring most tokens a "
                    "second. What a text repeats (suffix, ngram, reference) is drafted where it "
                    "is likely enough to stand; otherwise the small model or head that pays "
                    "most drafts, or none of them. A part that does not draft costs next to "
                    "nothing. With a --tree of its own it is the first part that has a draft, "
                    "those that look texts up before the others.",
           .keys = {},
           .source = "Ours; the parts have their own.",
           .pays = "Where it is not known beforehand which drafter suits the texts.",
           .example = "outrider generate --model TARGET --drafter auto:suffix,model:SMALL \\\n"
                      "    --prompt \"Once upon a time\""},
      .read_parts = read_auto_drafter,
      .joined_by = ','};
}

DrafterKind merge_kind() {
  return {.description =
              {.name = "merge",
               .form = "merge:A+B+...",
               .summary = "the trees of these, united",
               .needs = "its parts",
               .about = "The trees of all parts are united into one, which the target judges in "
                        "one pass. Rules that need distributions refuse it.",
               .source = "Miao et al., SpecInfer (2024).",
               .pays = "Where drafters know different things, such as a model and the text's own "
                       "repetitions.",
               .example = "outrider generate --model TARGET --drafter merge:model:SMALL+suffix \\\n"
                          "    --prompt-file notes.txt"},
          .read_parts = read_merge_drafter,
          .joined_by = '+'};
}

DrafterKind relay_kind() {
  return {
      .description =
          {.name = "relay",
           .form = "relay:A+B+...",
           .summary = "A, and B behind the tokens of A",
           .needs = "its parts",
           .about = "A drafts its own length. B goes on behind these tokens as if they stood. "
                    "Only the first part may be a head.",
           .source = "Chen et al., Cascade Speculative Drafting (2024), the horizontal cascade.",
           .pays = "Where A is dear: tokens far out in a draft are seldom reached, and a "
                   "cheaper drafter will do for them.",
           .example = "outrider generate --model TARGET \\\n"
                      "    --drafter relay:model:SMALL,length=3+ngram:length=6 \\\n"
                      "    --prompt-file notes.txt"},
      .read_parts = read_relay_drafter,
      .joined_by = '+'};
}

// The keys that the model inside staged: and cascade: takes. before: the prefix of its keys.
std::vector<KeyDescription> inner_model_keys(const std::string& before, const std::string& behind) {
  return {confidence_key(before + ",confidence=0.4" + behind),
          weights_key(before + ",weights=int8" + behind)};
}

DrafterKind staged_kind() {
  return {
      .description =
          {.name = "staged",
           .form = "staged:model:PATH+B",
           .summary = "a model that B drafts for",
           .needs = "a model",
           .about =
               "The drafter B drafts for the model as the model drafts for the target. "
               "Drafts have the distribution of the model's own, so that every rule works. The "
               "model's keys stand behind its PATH.",
           .keys = inner_model_keys("staged:model:PATH", "+ngram"),
           .source = "Spector and Re, Accelerating LLM Inference with Staged Speculative "
                     "Decoding (2023); Chen et al., Cascade Speculative Drafting (2024).",
           .pays = "Where the steps of the model are most of what a round costs.",
           .example = "outrider generate --model TARGET --drafter staged:model:SMALL+suffix \\\n"
                      "    --prompt-file notes.txt"},
      .has_draft_prob = true,
      .read_parts = read_staged_drafter,
      .joined_by = '+'};
}

DrafterKind cascade_kind() {
  return {.description =
              {.name = "cascade",
               .form = "cascade:RULE+model:PATH+B",
               .summary = "drafts of B, verified by a rule",
               .needs = "a model",
               .about = "B drafts for the model, which verifies by RULE (outrider rules). What it "
                        "accepts is the draft. generate --cascade \"spec:A>B>C\" is short for "
                        "it. The model's keys follow its PATH.",
               .keys = inner_model_keys("cascade:token-v3:alpha=0.3+model:PATH", "+model:SMALLER"),
               .source = "Narasimhan et al., Faster Cascades via Speculative Decoding (2024), with "
                         "the rule between each two of three models.",
               .pays = "With three models of one family and one vocabulary.",
               .example = "outrider generate --model LARGE --rule token-v3:alpha=0.3 \\\n"
                          "    --drafter cascade:token-v3:alpha=0.3+model:MIDDLE+model:SMALL \\\n"
                          "    --prompt \"Once upon a time\""},
          .has_draft_prob = true,
          .read_parts = read_cascade_drafter,
          .joined_by = '+'};
}

DrafterKind spoiled_kind() {
  return {
      .description =
          {.name = "spoiled",
           .form = "spoiled:tokens+A",
           .summary = "A with other tokens in its drafts",
           .needs = "its parts",
           .about = "What a drafter costs where it is wrong: A drafts, and other tokens take "
                    "the place of its own. The keys stand behind tokens.",
           .keys = {{.name = "from",
                     .value = "N",
                     .default_value = "0",
                     .meaning = "The first of the text's new tokens, from 0, where drafts are "
                                "other ones.",
                     .example = "spoiled:tokens:from=200+model:PATH"},
                    {.name = "to",
                     .value = "M",
                     .default_value = "never",
                     .meaning = "The first new token where they are A's again.",
                     .example = "spoiled:tokens:from=200,to=400+model:PATH"}},
           .source = "Ours.",
           .pays = "Never: it shows what speculation loses by a useless drafter, and by one that "
                   "changes.",
           .example = "outrider generate --model TARGET --drafter spoiled:tokens+model:SMALL \\\n"
                      "    --prompt \"Once upon a time\""},
      .read_parts = read_spoiled_drafter,
      .joined_by = '+'};
}

}  // namespace

std::vector<DrafterKind> composite_kinds() {
  return {auto_kind(),   first_kind(),   merge_kind(),  relay_kind(),
          staged_kind(), cascade_kind(), spoiled_kind()};
}

}  // namespace outrider
