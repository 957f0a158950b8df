// Text generation with a drafter riding ahead.
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

// How drafts are made and judged. Specs are "name:value,key=value,..."; an unknown name or key is a
// UsageError that lists the known ones. spec_description.h has drafters and rules with all keys.
struct SpeculationOptions {
  // "none": plain decoding. known_drafters() lists the others, docs/drafters.md describes them.
  // Those made of others take their specs whole: "first:ngram:min=2,max=4,model:PATH"; a backslash
  // before a comma or a plus sign takes it literally. "own[:NAME][,length=K,total=N]" is
  // own_drafter, whose drafts are K tokens deep (16) and have N tokens (64) at most; it is no part
  // of others.
  std::string drafter = "none";
  // What stands. "exact": the target's own distribution. Others trade quality for speed and need a
  // drafter with distributions; docs/cascades.md describes each:
  //   "chow:alpha=A", "diff:alpha=A", "opt:alpha=A" (with loss=zero-one|log), "token-v1:alpha=A",
  //   "token-v2:alpha=A", "token-v3:alpha=A", "lossy:alpha=A[,beta=B|auto]", "lossy:kl=D",
  //   "lossy-greedy:alpha=A", "lenience:eps=E[,f=linear|square|exp]", "budget:[kl=D][,total=D]",
  //   "bild-sampled:alpha=A[,distance=surprise|tv|kl|js]", "router:path=FILE[,threshold=T]",
  //   all with bonus=rule|target: what the token after an accepted draft is drawn from;
  //   "relaxed[:top=N,delta=D,open=TOKEN,close=TOKEN]", for models that think: the tokens, one each
  //   in the target's vocabulary, mark where; "typical[:epsilon=E,delta=D]" and
  //   "fly[:entropy=E,top=N,window=W]", which take any drafter; "bild[:fallback=F,rollback=R]".
  // "lossy-greedy" and "bild" are for temperature 0.
  std::string rule = "exact";
  // The shape of a draft; the root, the last token of the text, is not counted. Empty takes the
  // drafter's own: static:eagle1 for "eagle", static:medusa for "medusa", a chain as long as a
  // block for "dflash" and "dspark", of 8 for "pard", else chain:length=5.
  //   "chain:length=K"      K tokens in a row
  //   "widths:W1,W2,..."    W1 children of the root, W2 of each of these, and so on
  //   "static:eagle1", "static:medusa", "static:file=FILE"   a tree given by ranks: EAGLE-1's 25
  //                         nodes, Medusa's 63, or a JSON list such as [[0],[1],[0,0]]
  //   "dynamic:total=60,depth=7,topk=10"   grown where the drafter is confident, best nodes kept
  //   "best:nodes=60,depth=16"   the likeliest of all paths of at most so many tokens
  //   "sequoia:profile=FILE[,budget=N,depth=D]"   the fixed tree of at most N nodes that takes the
  //                         least time a token by what `outrider tune tree` measured (tune.h)
  // "widths" and "static" take "siblings=without" (default: sampled without replacement), "with"
  // (with it) or "top" (the likeliest tokens). At temperature 0 all are the likeliest tokens.
  std::string tree = {};
  // "exact": token by token rejection. "block": the draft judged jointly (chains; the same law,
  // never fewer accepted tokens in expectation). "traversal": the same for trees, from the leaves
  // up. "coupled": bit-identical to plain sampling with the seed.
  std::string verify = "exact";
  // A batch that has measured its passes (Batch::measure_passes) drafts as deep as pays, the tree's
  // depth at most and not at all where nothing does. With an empty tree a small model drafts chains
  // of up to 16 tokens, which end where the next one does not pay. A greedy text, and one that is
  // verified by "coupled", has the same bits for that; another draws other tokens of the same law.
  bool adaptive = false;
  // How a drafter's model is loaded.
  ModelOptions drafter_options = {};
  // A drafter that the program brings, for drafter = "own" (own_drafter.h). Of a Batch's requests
  // it is not read: Batch::add_drafter().
  std::shared_ptr<OwnDrafter> own_drafter = nullptr;
};

// Three models in a row: what to load as the target, and the drafter to run before it.
struct Cascade {
  std::string model;
  std::string drafter;
};
// "spec:A>B>C", paths from the smallest model to the largest: A drafts for B, and what B lets stand
// by the rule is the draft that C, the target, judges by the same rule in its turn (the drafter
// `cascade` of docs/drafters.md, where the rule between A and B can be another one). A backslash
// takes the next character literally. Throws UsageError for anything else.
Cascade read_cascade(std::string_view spec, const std::string& rule);

// Throws the UsageError (or, for a tree's file, the Error) that a Generator would throw for specs
// that cannot be read, without any model.
void check_speculation(const SpeculationOptions& options);

enum class TokenOrigin {
  plain,      // no draft was made
  accepted,   // drafted and accepted
  corrected,  // the verifier's, in place of a rejected draft token
  bonus,      // the verifier's, after a draft accepted whole
};

// What the target says of one token: the logarithm of its probability, by the softmax of the row of
// logits as the model gives it, without bias, penalties, temperature and truncation.
struct TokenLogProb {
  TokenId id = kNoToken;
  double log_prob = 0;
};

// One token as it is committed. Spans and views are valid during the call only.
struct TokenEvent {
  TokenId id = kNoToken;
  TokenOrigin origin = TokenOrigin::plain;
  // Of an accepted token: which of the drafter's proposals for its place it was, from 0; else -1.
  int rank = -1;
  // Text that became certain with this token: whole characters only, nothing that may turn out to
  // be part of a stop string; often the token's own, sometimes empty or several tokens' worth.
  std::string_view text;
  // It is an end token or a stop token: it ended the text and has no part in it.
  bool ends = false;
  // With GenerateOptions::log_probs: of this token, and of the likeliest there, the likeliest
  // first.
  double log_prob = 0;
  std::span<const TokenLogProb> top = {};
};

// The draft of one round, and what became of it. Spans are valid during the call only; each has
// an element for each drafted token, a parent before its children, siblings in the order of their
// ranks. Nothing was drafted: they are empty.
struct DraftEvent {
  std::span<const TokenId> tokens = {};  // (n)
  std::span<const int> parents = {};     // (n): an index among them; -1: the text's last token
  // (n): 1 for the tokens that stand: a path from the root. Where the text ends within it, the last
  // of them are not committed.
  std::span<const std::uint8_t> accepted = {};
};

struct GenerateOptions {
  int max_tokens = 256;
  SamplingParams sampling = {};
  std::uint64_t seed = 0;
  bool ignore_eos = false;                // go on past the model's end tokens
  std::vector<TokenId> stop_tokens = {};  // these end the text too; they are part of ids
  // The text ends before the first of these. One that is a special token's spelling stands for that
  // token.
  std::vector<std::string> stop_strings = {};
  // What the generated text has to be (grammar.h); null: anything. Target and drafter see no other
  // tokens than those that may follow; where none may, the request ends with an Error. A text that
  // max_tokens, a stop token or a stop string cuts off may be unfinished.
  std::shared_ptr<const Grammar> grammar = nullptr;
  // Which tokens may follow, asked at every node of every draft (token_mask.h); none: any. Beside a
  // grammar both count. Where no token may follow what was generated, and where it throws, the
  // request ends with that error. An end token ends the text as ever: the mask has to allow one.
  TokenMask mask = {};
  // What the text begins with: any tokens up to this one, such as the marker that ends reasoning.
  // The grammar, where there is one, is read behind it. kNoToken: nothing of the kind.
  TokenId opening_end = kNoToken;
  // Tokens of the opening at most: behind them `opening_end` is the only one allowed. -1: any
  // number.
  int most_opening = -1;
  // Special tokens that are text all the same where the model writes them, as its vocabulary spells
  // them: the markers of tool calls, say. Stop strings are looked for in them, too; one that ends
  // the text is no part of it. A grammar may spell its texts by them, and by added tokens that are
  // named here, which no grammar has otherwise.
  std::vector<TokenId> shown_tokens = {};
  bool add_special = true;   // the tokenizer's own special tokens around a text prompt
  bool keep_logits = false;  // fill GenerateResult::logits
  // Fill TokenEvent::log_prob, and TokenEvent::top with so many tokens. -1: neither.
  int log_probs = -1;
  std::function<void(const TokenEvent&)> on_token = {};
  // Called once a round, before the tokens of the round.
  std::function<void(const DraftEvent&)> on_draft = {};
  // When it becomes true the text ends after the pass in progress, in the middle of a long prompt
  // too (FinishReason::cancelled); what was generated by then is the result.
  const std::atomic<bool>* cancel = nullptr;
  // Seconds from the request on, those that it waits for others among them: behind the pass in
  // which they are over the text ends (FinishReason::time). 0: no bound.
  double max_seconds = 0;
  // Gets the text when it ends, and what the target said at each of its tokens. Opened for the
  // generator's target, and there for as long as the call lasts.
  VerdictLog* verdict_log = nullptr;
};

enum class FinishReason {
  stop,    // an end token, a stop token or a stop string
  length,  // max_tokens, or the end of the model's context
  time,    // max_seconds
  cancelled,
};

// Counts are the text's own, but for drafter_passes: texts generated together share passes, and
// each counts those of the rounds it took part in. Times are wall-clock seconds from the text's
// first pass to its end, whatever else these passes ran: they must not be added up over texts that
// were generated together.
struct GenerateStatistics {
  std::int64_t target_passes = 0;   // without prefill
  std::int64_t drafter_passes = 0;  // without prefill
  std::int64_t drafted = 0;         // tokens proposed
  std::int64_t accepted = 0;        // drafted tokens that stand in the text
  std::int64_t rejected = 0;        // tokens of the text that stand in the place of drafted ones
  std::int64_t emitted = 0;         // tokens generated
  // What the rule cost, summed over emitted positions: KL(rule_prob || target_prob) in nats, which
  // is infinite once a token could be emitted that the target's transform cuts off (at temperature
  // 0: any but its own); and the total variation between the two, at temperature 0 the number of
  // positions where another token than the target's was emitted. 0 for exact.
  double rule_kl = 0;
  double rule_tv = 0;
  double deferral_rate = 0;    // share of the drafter's mass that a cascade rule left to the target
  std::int64_t reused = 0;     // tokens of the prompt that did not have to be run (keep_last_text)
  double prefill_seconds = 0;  // the prompt (an encoder's, too), before the first round that drafts
  double decode_seconds = 0;   // from there on
  double draft_seconds = 0;    // part of decode_seconds: of the rounds the text took part in
  double target_seconds = 0;   // likewise: the target's passes
  // Likewise: judging, with the step of the drafter that a rule takes behind an accepted draft.
  double verify_seconds = 0;

  double tau() const { return target_passes > 0 ? double(emitted) / double(target_passes) : 0; }
  double acceptance_rate() const { return drafted > 0 ? double(accepted) / double(drafted) : 0; }
  double tokens_per_second() const {
    return decode_seconds > 0 ? double(emitted) / decode_seconds : 0;
  }
};

// What a rule's law at a position is a function of.
enum class RuleScope {
  prefix,  // the text before it: drafts decide nothing but the speed
  round,   // also where the round began: the drafter's distributions, or the rule, depend on it
};

struct GenerateResult {
  std::vector<TokenId> ids = {};  // generated ones only, a final end token included
  // What they add to the prompt's text, the blank before a first word included; without special
  // tokens (but GenerateOptions::shown_tokens) and the token that ended it, cut before a stop
  // string.
  std::string text = {};
  FinishReason finish_reason = FinishReason::length;
  std::string stop_string = {};  // of GenerateOptions::stop_strings the one that ended it; or empty
  GenerateStatistics statistics;
  std::vector<int> accepted_per_round = {};  // accepted draft tokens of each target pass
  std::vector<float> logits = {};  // (ids.size(), vocabulary): the target's raw row behind each id
};

struct GenerateRequest {
  std::vector<TokenId> prompt = {};  // at least one token, fewer than the model's context
  GenerateOptions options;
  // Of an encoder-decoder (ModelSummary::n_encoder_layers): what its encoder reads, at most as many
  // tokens as the context; the text then begins with the model's start token and `prompt`, which
  // may be empty. Where this is empty, the encoder reads `prompt` and the text begins with the
  // start token alone. Of a decoder: empty.
  std::vector<TokenId> encoder_prompt = {};
};

// Generates with one target and one drafter. Not thread-safe; deterministic given the options.
class Generator {
 public:
  // Throws Error or UsageError: unknown specs, a drafter whose vocabulary differs from the
  // target's.
  explicit Generator(std::shared_ptr<const Model> model,
                     const SpeculationOptions& speculation = {});
  ~Generator();
  Generator(Generator&&) noexcept;
  Generator& operator=(Generator&&) noexcept;

  // The prompt of an encoder-decoder is what its encoder reads.
  GenerateResult generate(std::string_view prompt, const GenerateOptions& options = {});

  // Several texts at once, one target pass a round for all of them. Each text is the same as if it
  // were generated alone. All requests are checked before any work is done: if one cannot be run,
  // Error or UsageError is thrown and none has begun. What is thrown later, by an on_token or for
  // weights that give NaN, ends all of them. The generator can be used again after either.
  std::vector<GenerateResult> generate(std::span<const GenerateRequest> requests);

  RuleScope rule_scope() const;

  // Batch::measure_passes() and its like, for speculation that is adaptive; generate() measures
  // where neither was called before.
  void measure_passes();
  void save_drafting_profile(const std::filesystem::path& file) const;
  void load_drafting_profile(const std::filesystem::path& file);

  // Whether the text that ended last is kept, with the KV caches of target and drafter: the tokens
  // that a later prompt begins with in common with it are not run again
  // (GenerateStatistics::reused), as in a conversation. Results have the same bits. The memory of
  // the caches stays in use between calls. At first false.
  void keep_last_text(bool keep);

  // Who is told of every round from now on (round_observer.h; round_trace.h writes a file); null:
  // nobody.
  void observe_rounds(std::shared_ptr<RoundObserver> observer);

  // Looks whether the drafter's spec has updates=DIR and a model has appeared there, or been
  // replaced, since the last look; if so, drafts with it from the next text on. Costs a few looks
  // at the file system where nothing has changed. True: a new drafter is in use. Throws Error if
  // what is there does not load or has another vocabulary: the drafter in use stays, and the same
  // files are not tried again. Whoever exports there replaces each file whole, config.json last.
  bool update_drafter();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace outrider

#endif  // OUTRIDER_GENERATE_H_
