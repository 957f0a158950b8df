// SPDX-License-Identifier: Apache-2.0
#include "speculate/registry/drafter_registry.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "speculate/drafters/composite/composite_kinds.h"
#include "speculate/drafters/grammar_drafter.h"
#include "speculate/drafters/heads/block_drafter.h"
#include "speculate/drafters/heads/eagle_drafter.h"
#include "speculate/drafters/heads/medusa_drafter.h"
#include "speculate/drafters/heads/mtp_drafter.h"
#include "speculate/drafters/lookup/ngram_drafter.h"
#include "speculate/drafters/lookup/recycling_drafter.h"
#include "speculate/drafters/lookup/reference_drafter.h"
#include "speculate/drafters/lookup/retrieval_drafter.h"
#include "speculate/drafters/lookup/suffix_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/drafters/pard_drafter.h"
#include "speculate/drafters/target/jacobi_drafter.h"
#include "speculate/drafters/target/layerskip_drafter.h"
#include "speculate/drafters/target/lookahead_drafter.h"
#include "speculate/registry/drafter_keys.h"

namespace outrider {
namespace {

std::string in_words(double number) { return fmt::format("{}", number); }

// A key shared by several kinds. example: a spec that gives the key.
KeyDescription length_key(int length, std::string meaning, std::string example) {
  return {.name = "length",
          .value = "K",
          .default_value = in_words(length),
          .meaning = std::move(meaning),
          .example = std::move(example)};
}

DrafterKind model_kind() {
  return {
      .description =
          {.name = "model",
           .form = "model:PATH",
           .summary = "a small model of the same vocabulary",
           .needs = "a model",
           .about =
               "A small language model proposes tokens under the request's own sampling settings. "
               "PATH is a Hugging Face directory or a .gguf file. A draft takes one pass of the "
               "model for each level of the tree. Every rule can use its distributions, but for "
               "vocabulary=text.",
           .keys = {length_key(kDefaultDraftLength,
                               "Tokens of a draft in a row where no --tree is given; with "
                               "schedule=heuristic those of the first draft.",
                               "model:PATH,length=3"),
                    {.name = "schedule",
                     .value = "constant|heuristic",
                     .default_value = "constant",
                     .meaning =
                         "heuristic: two tokens more behind a draft that was accepted whole, "
                         "one less behind any other.",
                     .example = "model:PATH,length=2,schedule=heuristic"},
                    confidence_key("model:PATH,confidence=0.4"),
                    {.name = "updates",
                     .value = "DIR",
                     .default_value = "none",
                     .meaning = "A place where a better model may appear. It drafts from the next "
                                "text on.",
                     .example = "model:PATH,updates=tuned"},
                    {.name = "vocabulary",
                     .value = "same|shared|text",
                     .default_value = "same",
                     .meaning =
                         "For a model of another vocabulary. shared: it drafts the tokens that "
                         "both have. text: its text is cut into the target's tokens.",
                     .example = "model:PATH,vocabulary=shared"},
                    weights_key("model:PATH,weights=int8")},
           .source = "Leviathan et al., Fast Inference from Transformers via Speculative Decoding "
                     "(2023). schedule=heuristic: assisted generation of Hugging Face "
                     "transformers. vocabulary=shared: Timor et al. (2025).",
           .pays = "Where the target is read from memory and the model is many times smaller. "
                   "outrider bench --simulate-acceptance shows what drafting with it costs here.",
           .example = "outrider generate --model TARGET --drafter model:SMALL,length=4 \\\n"
                      "    --prompt \"Once upon a time\""},
      .has_draft_prob = true,
      .read = read_model_drafter};
}

DrafterKind pard_kind() {
  return {
      .description =
          {.name = "pard",
           .form = "pard:PATH",
           .summary = "a small model that drafts in one pass",
           .needs = "a model",
           .about =
               "A small language model of the same vocabulary, trained to fill in mask tokens, "
               "drafts all tokens in one pass: each mask's row gives a distribution that knows "
               "nothing of what the others drew. PATH is a Hugging Face directory or a .gguf "
               "file. The mask is pard_token in config.json, tokenizer.ggml.mask_token_id in "
               "a .gguf file, or mask=; it is never drafted.",
           .keys = {length_key(kPardLength, "Tokens of a draft in a row where no --tree is given.",
                               "pard:PATH,length=12"),
                    {.name = "mask",
                     .value = "ID",
                     .default_value = "the file's",
                     .meaning = "The mask token, by its id in the model's vocabulary.",
                     .example = "pard:PATH,mask=151670"},
                    confidence_key("pard:PATH,confidence=0.3"),
                    weights_key("pard:PATH,weights=int8")},
           .source = "An et al., PARD (arXiv 2504.18583).",
           .pays = "As model:, where passes of 8 to 12 rows cost little more than one: a draft "
                   "costs one pass of the small model, however long it is.",
           .example = "outrider generate --model TARGET --drafter pard:SMALL \\\n"
                      "    --prompt \"Once upon a time\""},
      .has_draft_prob = true,
      .read = read_pard_drafter};
}

DrafterKind eagle_kind() {
  return {.description =
              {.name = "eagle",
               .form = "eagle:PATH",
               .summary = "an EAGLE head on the target's states",
               .needs = "heads",
               .about = "One decoder layer reads the target's hidden states and goes on from its "
                        "own predictions. The tensors in PATH tell EAGLE from EAGLE-3. A head "
                        "with a mask token (P-EAGLE) drafts all tokens in one pass. "
                        "outrider train eagle makes heads, but none of these. Without --tree "
                        "the draft is static:eagle1.",
               .keys = {confidence_key("eagle:PATH,confidence=0.3"),
                        weights_key("eagle:PATH,weights=int8")},
               .source = "Li et al., EAGLE (arXiv 2401.15077), EAGLE-2 (2406.16858, the tree "
                         "dynamic:) and EAGLE-3 (2503.01840); P-EAGLE (2602.01469).",
               .pays = "Where there is a head for this very target. A level of the draft costs one "
                       "layer. Trees gain more than chains.",
               .example = "outrider generate --model TARGET --drafter eagle:HEAD \\\n"
                          "    --prompt \"Once upon a time\""},
          .has_draft_prob = true,
          .read = read_eagle_drafter};
}

DrafterKind medusa_kind() {
  return {.description =
              {.name = "medusa",
               .form = "medusa:PATH",
               .summary = "Medusa heads on the target's states",
               .needs = "heads",
               .about = "Each head proposes one further token from the target's last hidden state. "
                        "No head sees what the others drafted. outrider train medusa makes them. "
                        "Without --tree the draft is static:medusa.",
               .keys = {confidence_key("medusa:PATH,confidence=0.2"),
                        weights_key("medusa:PATH,weights=int8")},
               .source = "Cai et al., Medusa (arXiv 2401.10774).",
               .pays = "Where heads have to be cheap to train and to run. Their chains are poor; "
                       "trees make up for it.",
               .example = "outrider generate --model TARGET --drafter medusa:HEADS \\\n"
                          "    --prompt \"Once upon a time\""},
          .has_draft_prob = true,
          .read = read_medusa_drafter};
}

DrafterKind dflash_kind() {
  return {
      .description =
          {.name = "dflash",
           .form = "dflash:PATH",
           .summary = "a head that drafts a block in one pass",
           .needs = "heads",
           .about = "A few decoder layers read the target's hidden states as keys and values, "
                    "and all places of a block at once: the newest token and masks. Each place "
                    "gives a distribution that knows nothing of what the others drew. PATH "
                    "holds a DFlash head as z-lab, DeepSpec or speculators write it. Without "
                    "--tree the draft is a chain as long as the block, of 16 at most; trees take "
                    "the same pass, best:nodes=N the likeliest paths.",
           .keys = {confidence_key("dflash:PATH,confidence=0.3"),
                    weights_key("dflash:PATH,weights=int8")},
           .source = "Chen et al., DFlash (arXiv 2602.06036); DDTree (arXiv 2604.12989, the tree "
                     "best:).",
           .pays = "Where there is a head for this very target, and passes of 8 to 16 rows cost "
                   "little more than one. A draft costs one small pass, however long it is.",
           .example = "outrider generate --model TARGET --drafter dflash:HEAD \\\n"
                      "    --prompt \"Once upon a time\""},
      .has_draft_prob = true,
      .read = read_dflash_drafter};
}

DrafterKind dspark_kind() {
  return {
      .description =
          {.name = "dspark",
           .form = "dspark:PATH",
           .summary = "a block head whose tokens form a chain",
           .needs = "heads",
           .about = "As dflash, and a matrix of low rank adds to each place's distribution what "
                    "the token drawn at the place before says of the next one, gated or "
                    "recurrent where the file says so. PATH holds a DSpark head as DeepSpec, "
                    "SpecForge or speculators write it. In trees each node has the "
                    "distribution of its own path.",
           .keys = {{.name = "accept",
                     .value = "C",
                     .default_value = "0",
                     .meaning = "A path of the draft ends in front of the first token whose "
                                "acceptance the head's own estimate puts below this; the "
                                "estimate never sees that token. 0 never ends it.",
                     .example = "dspark:PATH,accept=0.4"},
                    confidence_key("dspark:PATH,confidence=0.3"),
                    weights_key("dspark:PATH,weights=int8")},
           .source = "DSpark (arXiv 2607.05147).",
           .pays = "As dflash; each place costs a product of the rank by the vocabulary more.",
           .example = "outrider generate --model TARGET --drafter dspark:HEAD \\\n"
                      "    --prompt \"Once upon a time\""},
      .has_draft_prob = true,
      .read = read_dspark_drafter};
}

DrafterKind mtp_kind() {
  return {.description =
              {.name = "mtp",
               .form = "mtp[:PATH]",
               .summary = "multi-token prediction modules",
               .needs = "heads",
               .about =
                   "The modules that DeepSeek-V3, GLM-4.5, Qwen3-Next and Qwen3.5 were published "
                   "with, or those of outrider train mtp. They stand in the target's own directory "
                   "or .gguf file, or else in PATH. A single module runs on from what it "
                   "gave, as deep as is asked. Of several, module k drafts the k-th token "
                   "from what the module before it gave, and no draft is deeper than there "
                   "are modules. PATH may also be an assistant of Gemma 4, which reads the "
                   "target's own keys and values.",
               .keys = {confidence_key("mtp:PATH,confidence=0.3"), weights_key("mtp:weights=int8")},
               .source = "DeepSeek-AI, DeepSeek-V3 Technical Report (arXiv 2412.19437).",
               .pays = "Where the target was trained with such modules: nothing else is to be "
                       "loaded.",
               .example = "outrider generate --model TARGET --drafter mtp \\\n"
                          "    --prompt \"Once upon a time\""},
          .has_draft_prob = true,
          .read = read_mtp_drafter};
}

DrafterKind ngram_kind() {
  const NgramDrafter::Options defaults;
  return {
      .description =
          {.name = "ngram",
           .form = "ngram",
           .summary = "copies of what the text said before",
           .needs = "nothing",
           .about = "Prompt lookup: where the text's last tokens stood before, what followed them "
                    "is the draft. It keeps an index of the text and runs no model.",
           .keys = {{.name = "min",
                     .value = "N",
                     .default_value = in_words(defaults.shortest),
                     .meaning = "Last tokens that must agree, at least. More of them draft less "
                                "often and are right more often.",
                     .example = "ngram:min=2,max=4"},
                    {.name = "max",
                     .value = "N",
                     .default_value = in_words(defaults.longest),
                     .meaning = "Last tokens that are compared, at most; more before fewer.",
                     .example = "ngram:max=5"},
                    length_key(defaults.length, "Tokens that are copied.", "ngram:length=6"),
                    {.name = "match",
                     .value = "latest|first",
                     .default_value = "latest",
                     .meaning = "Which place is copied from. latest goes on into the draft itself; "
                                "first ends with the text, as in Hugging Face transformers.",
                     .example = "ngram:min=1,max=2,match=first"},
                    {.name = "across",
                     .value = "PLACES",
                     .default_value = in_words(defaults.across),
                     .meaning =
                         "Strings of max tokens in earlier texts of this process of which it "
                         "is remembered what followed, 8 bytes each.",
                     .example = "ngram:min=2,max=12,across=1000000"}},
           .source = "Saxena, Prompt Lookup Decoding (2023).",
           .pays = "Where answers repeat their question: summaries, edits, code, extraction; with "
                   "across and a larger max, where texts repeat earlier ones.",
           .example = "outrider generate --model TARGET --drafter ngram:min=2,max=4 \\\n"
                      "    --prompt-file notes.txt"},
      .read = read_ngram_drafter};
}

DrafterKind reference_kind() {
  const ReferenceDrafter::Options defaults;
  return {
      .description =
          {.name = "reference",
           .form = "reference:file=F",
           .summary = "copies of given documents",
           .needs = "texts",
           .about = "The longest run of the text's last tokens that a document has decides. What "
                    "follows its first occurrence there is the draft. The index is made anew at "
                    "each start; documents have four million tokens at most.",
           .keys = {{.name = "file",
                     .value = "F",
                     .meaning = "A document (UTF-8); a folder stands for all files in it.",
                     .example = "reference:file=manual.txt",
                     .repeatable = true},
                    {.name = "min",
                     .value = "N",
                     .default_value = in_words(defaults.shortest),
                     .meaning = "Last tokens that must agree, at least.",
                     .example = "reference:file=manual.txt,min=4"},
                    length_key(defaults.length, "Tokens that are copied.",
                               "reference:file=manual.txt,length=20")},
           .source = "Yang et al., Inference with Reference (LLMA, 2023).",
           .pays = "Where answers quote documents that are known in advance, such as what was "
                   "retrieved for the question.",
           .example = "outrider generate --model TARGET --drafter reference:file=manual.txt \\\n"
                      "    --prompt \"How is the filter changed?\""},
      .read = read_reference_drafter};
}

DrafterKind suffix_kind() {
  const SuffixDrafter::Options defaults;
  return {
      .description =
          {.name = "suffix",
           .form = "suffix",
           .summary = "what has followed most often so far",
           .needs = "nothing",
           .about = "A suffix automaton of the text counts what followed each string that ends it. "
                    "The draft is the tree of likely continuations in which most tokens may hope "
                    "to be accepted. With a chain as --tree the likeliest path alone is drafted.",
           .keys = {length_key(defaults.length, "Tokens of the longest path.", "suffix:length=8"),
                    {.name = "total",
                     .value = "N",
                     .default_value = in_words(defaults.total),
                     .meaning = "Tokens of a draft, at most.",
                     .example = "suffix:total=32"},
                    {.name = "cut",
                     .value = "C",
                     .default_value = in_words(defaults.cut),
                     .meaning = "Paths of a lower probability are dropped.",
                     .example = "suffix:factor=1,cut=0.6"},
                    {.name = "factor",
                     .value = "F",
                     .default_value = in_words(defaults.factor),
                     .meaning = "A path has at most so many tokens for each token of the string "
                                "that it follows.",
                     .example = "suffix:factor=1"},
                    {.name = "across",
                     .value = "TOKENS",
                     .default_value = in_words(defaults.across),
                     .meaning = "Tokens of earlier texts of this process that are remembered.",
                     .example = "suffix:across=100000"}},
           .source = "Oliaro et al., SuffixDecoding (2024).",
           .pays = "Where texts repeat themselves or, with across, earlier ones. Where rows are "
                   "dear, factor=1,cut=0.6 drafts what is nearly sure alone.",
           .example = "outrider serve --model TARGET --drafter suffix:across=100000"},
      .read = read_suffix_drafter};
}

DrafterKind retrieval_kind() {
  return {
      .description =
          {.name = "retrieval",
           .form = "retrieval:path=FILE",
           .summary = "what follows in a large text",
           .needs = "a datastore",
           .about = fmt::format(
               "The text's last tokens are looked up in a datastore. What stands behind their "
               "occurrences is joined to a tree of at most {} tokens, {} deep. outrider datastore "
               "build makes a store from texts.",
               RetrievalDrafter::kNodes, RetrievalDrafter::kDepth),
           .keys = {{.name = "path",
                     .value = "FILE",
                     .meaning = "The datastore, made for the target's vocabulary.",
                     .example = "retrieval:path=code.store"}},
           .source = "He et al., REST: Retrieval-Based Speculative Decoding (arXiv 2311.08252).",
           .pays = "For text that others have written before: code against common libraries, "
                   "boilerplate, one's own archive. The rows of a wide draft must be cheap.",
           .example = "outrider generate --model TARGET --drafter retrieval:path=code.store \\\n"
                      "    --prompt \"import numpy as\""},
      .read = read_retrieval_drafter};
}

DrafterKind grammar_kind() {
  return {
      .description =
          {.name = "grammar",
           .form = "grammar",
           .summary = "what the request's form makes certain",
           .needs = "nothing",
           .about = "Where --json-schema, --grammar or --regex leave no choice, the tokens that "
                    "must follow are the draft. Without a form it drafts nothing.",
           .keys = {length_key(GrammarDrafter::kLength, "Tokens of a draft, at most.",
                               "grammar:length=8")},
           .source = "This project (docs/grammar.md).",
           .pays = "With every form, in front of another drafter: first:grammar,suffix.",
           .example = "outrider generate --model TARGET --drafter first:grammar,suffix \\\n"
                      "    --json-schema person.json --prompt \"Describe Ada Lovelace.\""},
      .read = read_grammar_drafter};
}

DrafterKind lookahead_kind() {
  const LookaheadDrafter::Options defaults;
  return {
      .description =
          {.name = "lookahead",
           .form = "lookahead",
           .summary = "n-grams that the target itself writes",
           .needs = "nothing",
           .about = "Each pass of the target also runs a window of guesses at the text to come, "
                    "one step of Jacobi iteration. The n-grams that it writes there are drafts of "
                    "later rounds.",
           .keys = {{.name = "window",
                     .value = "W",
                     .default_value = in_words(defaults.window.width),
                     .meaning = "Columns of the window.",
                     .example = "lookahead:window=15,ngram=5,guesses=15"},
                    {.name = "ngram",
                     .value = "N",
                     .default_value = in_words(defaults.window.ngram),
                     .meaning = "Tokens of an n-gram.",
                     .example = "lookahead:ngram=4"},
                    {.name = "guesses",
                     .value = "G",
                     .default_value = in_words(defaults.n_guesses),
                     .meaning = "N-grams that are kept for each first token, and drafted.",
                     .example = "lookahead:guesses=3"}},
           .source = "Fu et al., Break the Sequential Dependency of LLM Inference Using Lookahead "
                     "Decoding (2024).",
           .pays = "Where there is no other drafter, a pass is bound by reading weights, and the "
                   "text repeats its own turns: code, lists. It loses most from sampling.",
           .example = "outrider generate --model TARGET --drafter lookahead:window=15,ngram=5 \\\n"
                      "    --prompt \"def sort(\""},
      .read = read_lookahead_drafter};
}

DrafterKind recycling_kind() {
  const RecyclingDrafter::Options defaults;
  return {
      .description =
          {.name = "recycling",
           .form = "recycling",
           .summary = "the target's candidates behind a token",
           .needs = "nothing",
           .about = "Token Recycling: for each token that a pass of the target runs, rejected ones "
                    "as well, the likeliest tokens behind it are kept. The draft is a tree of "
                    "these, grown from the text's last token; without --tree the paper's, of 80 "
                    "tokens. Behind a token that was not run since the prompt nothing is drafted.",
           .keys = {{.name = "k",
                     .value = "K",
                     .default_value = in_words(defaults.n_candidates),
                     .meaning = "Tokens that are kept behind each token.",
                     .example = "recycling:k=4"},
                    {.name = "rows",
                     .value = "N",
                     .default_value = in_words(defaults.rows),
                     .meaning = "Tokens of a text that have such a row, at most, some 200 bytes "
                                "each; the one written longest ago makes room.",
                     .example = "recycling:rows=4000"},
                    {.name = "across",
                     .value = "ROWS",
                     .default_value = in_words(defaults.across),
                     .meaning = "Rows of earlier texts of this process that are remembered, for "
                                "tokens that have none in the text.",
                     .example = "recycling:across=32000"}},
           .source = "Luo et al., Turning Trash into Treasure: Accelerating Inference of Large "
                     "Language Models with Token Recycling (arXiv 2408.08696).",
           .pays = "Where there is no other drafter and further rows of a pass cost little. Text "
                   "need not repeat itself; but one token of it decides what is drafted.",
           .example = "outrider generate --model TARGET --drafter recycling:k=4 \\\n"
                      "    --prompt \"def sort(\""},
      .read = read_recycling_drafter};
}

DrafterKind layerskip_kind() {
  return {
      .description =
          {.name = "layerskip",
           .form = "layerskip:layers=L",
           .summary = "the target with some layers left out",
           .needs = "nothing",
           .about = "The target drafts for itself: with its first layers alone, or without those "
                    "listed. It does all that model: does. outrider tune layers finds which "
                    "layers to leave out.",
           .keys = {{.name = "layers",
                     .value = "L",
                     .meaning = "Runs the first L layers. Either this or skip.",
                     .example = "layerskip:layers=8"},
                    {.name = "skip",
                     .value = "I+J+...",
                     .meaning =
                         "Runs all layers but these, numbered from 0. Either this or layers.",
                     .example = "layerskip:skip=1+3"},
                    confidence_key("layerskip:layers=8,confidence=0.4")},
           .source = "Elhoushi et al., LayerSkip (2024), for layers; Zhang et al., Draft & Verify "
                     "(2024), for skip.",
           .pays = "For targets that were trained to exit early, and for deep ones. Each drafted "
                   "token costs the share of the layers that stay.",
           .example = "outrider generate --model TARGET --drafter layerskip:skip=9+11+13 \\\n"
                      "    --prompt \"Once upon a time\""},
      .has_draft_prob = true,
      .read = read_layerskip_drafter};
}

DrafterKind jacobi_kind() {
  return {
      .description =
          {.name = "jacobi",
           .form = "jacobi",
           .summary = "guesses, renewed by each pass",
           .needs = "nothing",
           .about = "The next tokens are guessed. Every pass of the target renews all of them: "
                    "what it finds likeliest behind each guess is the next round's guess.",
           .keys = {length_key(kDefaultDraftLength, "Tokens that are guessed.", "jacobi:length=8")},
           .source = "Santilli et al., Accelerating Transformer Inference for Translation via "
                     "Parallel Decoding (2023).",
           .pays = "With models that were trained for it (consistency models), and seldom "
                   "otherwise. It is the baseline of lookahead.",
           .example = "outrider generate --model TARGET --drafter jacobi:length=8 \\\n"
                      "    --prompt \"Once upon a time\""},
      .read = read_jacobi_drafter};
}

}  // namespace

std::span<const DrafterKind> drafter_kinds() {
  static const std::vector<DrafterKind> all = [] {
    std::vector<DrafterKind> kinds = {
        model_kind(),     pard_kind(),      eagle_kind(),     medusa_kind(),
        dflash_kind(),    dspark_kind(),    mtp_kind(),       ngram_kind(),
        reference_kind(), suffix_kind(),    retrieval_kind(), grammar_kind(),
        lookahead_kind(), recycling_kind(), layerskip_kind(), jacobi_kind()};
    for (DrafterKind& kind : composite_kinds()) kinds.push_back(std::move(kind));
    return kinds;
  }();
  return all;
}

}  // namespace outrider
