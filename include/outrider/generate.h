// SPDX-License-Identifier: Apache-2.0
// Text generation with speculative decoding.
//
//   auto model = outrider::Model::load("SmolLM2-1.7B-Instruct");
//   outrider::Generator generator(model, {.drafter = "model:SmolLM2-135M-Instruct"});
//   auto result = generator.generate("Once upon a time", {.max_tokens = 64});
//   std::cout << result.text << '\n';
//
// By default the tokens, and the logits behind them, are bit for bit those of plain decoding.
#ifndef OUTRIDER_GENERATE_H_
#define OUTRIDER_GENERATE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/grammar.h"
#include "outrider/model.h"
#include "outrider/own_drafter.h"
#include "outrider/sampling.h"
#include "outrider/token_mask.h"
#include "outrider/types.h"
#include "outrider/verdict_log.h"

namespace outrider {

class RoundObserver;

// How drafts are made and verified. Specs have the form "name:value,key=value,...". An unknown name
// or key is a UsageError that lists the known ones. spec_description.h lists all drafters and rules
// with their keys.
struct SpeculationOptions {
  // "none": plain decoding. known_drafters() lists the others; docs/drafters.md describes them.
  // Composite drafters take the whole specs of their parts: "first:ngram:min=2,max=4,model:PATH"; a
  // backslash takes a comma or a plus sign literally. "own[:NAME][,length=K,total=N]" is
  // own_drafter, with drafts of at most K levels (16) and N tokens (64); it cannot be part of
  // another drafter.
  std::string drafter = "none";
  // The distribution of emitted tokens. "exact" is the target's own. The others trade quality for
  // speed and need a drafter with distributions; docs/cascades.md describes each:
  //   "chow:alpha=A", "diff:alpha=A", "opt:alpha=A" (with loss=zero-one|log), "token-v1:alpha=A",
  //   "token-v2:alpha=A", "token-v3:alpha=A", "lossy:alpha=A[,beta=B|auto]", "lossy:kl=D",
  //   "lossy-greedy:alpha=A", "lenience:eps=E[,f=linear|square|exp]", "budget:[kl=D][,total=D]",
  //   "bild-sampled:alpha=A[,distance=surprise|tv|kl|js]", "router:path=FILE[,threshold=T]".
  // All of these take bonus=rule|target: the distribution of the token after an accepted draft.
  //   "relaxed[:top=N,delta=D,open=TOKEN,close=TOKEN]", for reasoning models: open and close, one
  //   token each in the target's vocabulary, mark the reasoning
  //   "typical[:epsilon=E,delta=D]" and "fly[:entropy=E,top=N,window=W]", with any drafter
  //   "bild[:fallback=F,rollback=R]"
  // "lossy-greedy" and "bild" need temperature 0.
  std::string rule = "exact";
  // The shape of a draft. The root, the last token of the text, does not count. Empty takes the
  // drafter's default: static:eagle1 for "eagle", static:medusa for "medusa", a chain of a block's
  // length for "dflash" and "dspark", chain:length=8 for "pard", else chain:length=5.
  //   "chain:length=K"      K tokens in a row
  //   "widths:W1,W2,..."    W1 children of the root, W2 of each of these, and so on
  //   "static:eagle1", "static:medusa", "static:file=FILE"   a tree given by ranks: EAGLE-1's 25
  //                         nodes, Medusa's 63, or a JSON list such as [[0],[1],[0,0]]
  //   "dynamic:total=60,depth=7,topk=10"   grown where the drafter is confident, best nodes kept
  //   "best:nodes=60,depth=16"   the likeliest of all paths, in at most `nodes` nodes
  //   "sequoia:profile=FILE[,budget=N,depth=D]"   the fixed tree of at most N nodes with the least
  //                         time per token by what `outrider tune tree` measured (tune.h)
  // "widths" and "static" take siblings=without (default: sampled without replacement), "with"
  // (with replacement) or "top" (the likeliest tokens). At temperature 0 all are the likeliest
  // tokens.
  std::string tree = {};
  // "exact": rejection sampling token by token. "block": the draft judged jointly; chains only,
  // with the same distribution and never fewer accepted tokens in expectation. "traversal": the
  // same for trees, from the leaves up. "coupled": bit-identical to plain sampling with the seed.
  std::string verify = "exact";
  // Plans the draft length by measured costs (`--tree auto`, "as deep as pays"). A batch that has
  // measured its passes (Batch::measure_passes) drafts tokens only while they are expected to save
  // time, at most to the tree's depth, and possibly none. With an empty tree a small model drafts
  // chains of up to 16 tokens; a chain ends where the next token is not expected to save time.
  // Greedy texts, and those verified by "coupled", keep their bits. Other texts draw other tokens
  // of the same distribution.
  bool adaptive = false;
  // How a drafter's model is loaded.
  ModelOptions drafter_options = {};
  // A drafter of the program, for drafter = "own" (own_drafter.h). A Batch ignores it: use
  // Batch::add_drafter().
  std::shared_ptr<OwnDrafter> own_drafter = nullptr;
};

// A cascade of three models: the target, and the drafter that runs before it.
struct Cascade {
  std::string model;
  std::string drafter;
};
// Reads "spec:A>B>C": paths from the smallest model to the largest. A drafts for B; what B accepts
// by `rule` is the draft that C, the target, judges by the same rule. (The drafter `cascade` of
// docs/drafters.md takes another rule between A and B.) A backslash takes the next character
// literally. Throws UsageError for anything else.
Cascade read_cascade(std::string_view spec, const std::string& rule);

// Checks specs without a model. Throws the UsageError that a Generator would throw for specs that
// cannot be read (for a tree's file, the Error).
void check_speculation(const SpeculationOptions& options);

enum class TokenOrigin {
  plain,      // no draft was made
  accepted,   // drafted and accepted
  corrected,  // the verifier's, in place of a rejected draft token
  bonus,      // the verifier's, after a draft accepted whole
};
// The enumerator as it is spelled here.
const char* name_of(TokenOrigin origin);

// The target's log-probability of one token: log softmax of the raw logits, without bias,
// penalties, temperature and truncation.
struct TokenLogProb {
  TokenId id = kNoToken;
  double log_prob = 0;
};

// One token as it is committed. Spans and views are valid during the call only.
struct TokenEvent {
  TokenId id = kNoToken;
  TokenOrigin origin = TokenOrigin::plain;
  // For an accepted token: its rank among the drafter's proposals for its position, from 0; else
  // -1.
  int rank = -1;
  // Text that became certain with this token: whole characters only, and nothing that could still
  // be part of a stop string. It may be empty or hold the text of several tokens.
  std::string_view text;
  // An end token or a stop token: it ended the text and is no part of `text`.
  bool ends = false;
  // With GenerateOptions::log_probs: this token's, and those of the likeliest tokens at this
  // position, in descending order.
  double log_prob = 0;
  std::span<const TokenLogProb> top = {};
};

// The draft of one round and the verdict. Spans are valid during the call only. Each has an element
// for each drafted token: parents before children, siblings by rank. Empty if nothing was drafted.
struct DraftEvent {
  std::span<const TokenId> tokens = {};  // (n)
  std::span<const int> parents = {};     // (n): index into tokens; -1: the text's last token
  // (n): 1 for accepted tokens, which form a path from the root. If the text ends within the path,
  // the last of them are not committed.
  std::span<const std::uint8_t> accepted = {};
};

struct GenerateOptions {
  int max_tokens = 256;
  SamplingParams sampling = {};
  std::uint64_t seed = 0;
  bool ignore_eos = false;                // continue after the model's end tokens
  std::vector<TokenId> stop_tokens = {};  // also end the text; they are part of ids
  // The text ends before the first of these. A special token's spelling stands for that token.
  std::vector<std::string> stop_strings = {};
  // The form of the generated text (grammar.h); null: any. Target and drafter see allowed tokens
  // only. If none is allowed, the request ends with an Error. A text cut off by max_tokens, a stop
  // token or a stop string may be incomplete.
  std::shared_ptr<const Grammar> grammar = nullptr;
  // Says which tokens may follow, at every node of every draft (token_mask.h); none: all. Grammar
  // and mask apply together. If no token may follow the generated text, or the mask throws, the
  // request ends with that error. The mask must also allow end tokens.
  TokenMask mask = {};
  // Ends an opening of the text in which any tokens are allowed, such as reasoning before its end
  // marker. The grammar applies after this token. kNoToken: no opening.
  TokenId opening_end = kNoToken;
  // Maximum tokens of the opening; after them only `opening_end` is allowed. -1: no limit.
  int max_opening = -1;
  // Special tokens that appear in the text by their spelling, such as markers of tool calls. Stop
  // strings are found in them too; one that ends the text is no part of it. A grammar may use these
  // special tokens and added tokens, and no others.
  std::vector<TokenId> shown_tokens = {};
  bool add_special = true;   // add the tokenizer's special tokens to a text prompt
  bool keep_logits = false;  // fill GenerateResult::logits
  // Fills TokenEvent::log_prob, and TokenEvent::top with this many tokens. -1: neither.
  int log_probs = -1;
  std::function<void(const TokenEvent&)> on_token = {};
  // Called once a round, before the round's tokens.
  std::function<void(const DraftEvent&)> on_draft = {};
  // When it becomes true the text ends after the pass in progress, also within a long prompt
  // (FinishReason::cancelled). The result is what was generated by then.
  const std::atomic<bool>* cancel = nullptr;
  // Time limit in seconds from the request on, waiting included. The text ends after the pass in
  // which it expires (FinishReason::time). 0: no limit.
  double max_seconds = 0;
  // Receives the text when it ends, with what the target said at each of its tokens. Must have been
  // opened for the generator's target, and must outlive the call.
  VerdictLog* verdict_log = nullptr;
};

enum class FinishReason {
  stop,    // an end token, a stop token or a stop string
  length,  // max_tokens, or the end of the model's context
  time,    // max_seconds
  cancelled,
};
// The enumerator as it is spelled here.
const char* name_of(FinishReason reason);

// Statistics of one text. Counts are the text's own except for drafter_passes: texts generated
// together share these, and each counts those of its rounds. Times are wall-clock seconds from the
// text's first pass to its end, including work for other texts in the same passes. Do not add them
// up over texts generated together.
struct GenerateStatistics {
  std::int64_t target_passes = 0;   // without prefill
  std::int64_t drafter_passes = 0;  // without prefill
  std::int64_t drafted = 0;         // tokens proposed
  std::int64_t accepted = 0;        // drafted tokens in the text
  std::int64_t rejected = 0;        // tokens of the text that replaced drafted ones
  std::int64_t emitted = 0;         // tokens generated
  // The cost of the rule, summed over emitted positions. rule_kl: KL(rule_prob || target_prob) in
  // nats; infinite once a token could be emitted that the target's transform excludes (at
  // temperature 0: any but the target's). rule_tv: the total variation between the two; at
  // temperature 0 the number of positions with another token than the target's. Both are 0 for
  // "exact".
  double rule_kl = 0;
  double rule_tv = 0;
  double deferral_rate = 0;    // share of the drafter's mass that a cascade rule left to the target
  std::int64_t reused = 0;     // prompt tokens that were not run again (keep_last_text)
  double prefill_seconds = 0;  // prompt and encoder, before the first round that drafts
  double decode_seconds = 0;   // all after prefill
  double draft_seconds = 0;    // part of decode_seconds: drafting in the text's rounds
  double target_seconds = 0;   // part of decode_seconds: the target's passes
  // Part of decode_seconds: verification, including the drafter's pass after an accepted draft if
  // the rule needs one.
  double verify_seconds = 0;

  double tau() const { return target_passes > 0 ? double(emitted) / double(target_passes) : 0; }
  double acceptance_rate() const { return drafted > 0 ? double(accepted) / double(drafted) : 0; }
  double tokens_per_second() const {
    return decode_seconds > 0 ? double(emitted) / decode_seconds : 0;
  }
};

// What the rule's distribution at a position depends on.
enum class RuleScope {
  prefix,  // the text before it: drafts affect only the speed
  round,   // also where the round began: the drafter's distributions, or the rule, depend on it
};

struct GenerateResult {
  std::vector<TokenId> ids = {};  // generated tokens only, including a final end token
  // What the ids add to the prompt's text, including the blank before a first word. Excludes
  // special tokens (but GenerateOptions::shown_tokens) and the token that ended it; cut before a
  // stop string.
  std::string text = {};
  FinishReason finish_reason = FinishReason::length;
  std::string stop_string = {};  // the one of GenerateOptions::stop_strings that ended it; or empty
  GenerateStatistics statistics;
  std::vector<int> accepted_per_round = {};  // accepted draft tokens of each target pass
  std::vector<float> logits = {};  // (ids.size(), vocabulary): the target's raw row behind each id
};

struct GenerateRequest {
  std::vector<TokenId> prompt = {};  // at least one token, fewer than the model's context
  GenerateOptions options;
  // For an encoder-decoder (ModelSummary::n_encoder_layers): the encoder's input, at most as many
  // tokens as the context. The text then begins with the model's start token and `prompt`, which
  // may be empty. If this is empty, the encoder reads `prompt` and the text begins with the start
  // token. For a decoder: must be empty.
  std::vector<TokenId> encoder_prompt = {};
};

// Generates with one target and one drafter. Not thread-safe; deterministic given the options.
class Generator {
 public:
  // Throws Error or UsageError for unknown specs and for a drafter whose vocabulary differs from
  // the target's.
  explicit Generator(std::shared_ptr<const Model> model,
                     const SpeculationOptions& speculation = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // For an encoder-decoder the prompt is the encoder's input.
  GenerateResult generate(std::string_view prompt, const GenerateOptions& options = {});

  // Generates several texts together, with one target pass a round for all. Each text is the same
  // as if generated alone. All requests are checked first: if one cannot be run, throws Error or
  // UsageError and starts none. A later exception, from an on_token or for weights that give NaN,
  // ends all of them. The generator can be used again after either.
  std::vector<GenerateResult> generate(std::span<const GenerateRequest> requests);

  RuleScope rule_scope() const;

  // As the functions of Batch, for adaptive speculation. generate() measures if neither
  // measure_passes() nor load_drafting_profile() was called before.
  void measure_passes();
  void save_drafting_profile(const std::filesystem::path& file) const;
  void load_drafting_profile(const std::filesystem::path& file);

  // Keeps the last ended text with the KV caches of target and drafter. A later prompt, as in a
  // conversation, skips the tokens that it shares with its beginning (GenerateStatistics::reused).
  // Results have the same bits. The memory of the caches stays in use between calls. Initially
  // false.
  void keep_last_text(bool keep);

  // Sets the observer of all rounds from now on (round_observer.h; round_trace.h writes a file).
  // May be null.
  void observe_rounds(std::shared_ptr<RoundObserver> observer);

  // Checks whether a model has appeared or been replaced in the DIR of a drafter with updates=DIR.
  // If so, the next text drafts with it; returns true. Costs a few file system calls if nothing has
  // changed. Throws Error if the new files do not load or have another vocabulary: the current
  // drafter stays, and the same files are not tried again. A program that exports to DIR must
  // replace each file whole, config.json last.
  bool update_drafter();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_GENERATE_H_
