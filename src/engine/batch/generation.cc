// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "outrider/error.h"
#include "sampling/log_probs.h"

namespace outrider {

void part_encoder_prompt(GenerateRequest& request, const Model& model) {
  if (model.summary().n_encoder_layers == 0) return;
  if (request.encoder_prompt.empty()) request.encoder_prompt = std::exchange(request.prompt, {});
  request.prompt.insert(request.prompt.begin(), model.summary().start_token);
}

void check_encoder_prompt(const GenerateRequest& request, const Model& model) {
  constexpr const char* kOperation = "generate";
  const std::size_t n_tokens = request.encoder_prompt.size();
  if (model.summary().n_encoder_layers == 0) {
    if (n_tokens == 0) return;
    throw UsageError(kOperation, "encoder prompt", "none (the model is a decoder)",
                     fmt::format("{} tokens", n_tokens));
  }
  const int context = model.summary().context_length;
  if (n_tokens == 0 || n_tokens > static_cast<std::size_t>(context)) {
    throw Error(kOperation, "encoder prompt",
                fmt::format("1 to {} tokens, the model's context", context),
                fmt::format("{}", n_tokens));
  }
  const int vocabulary = model.summary().vocabulary_size;
  for (const TokenId id : request.encoder_prompt) {
    if (id >= 0 && id < vocabulary) continue;
    throw Error(kOperation, "encoder prompt", fmt::format("token ids below {}", vocabulary),
                fmt::format("{}", id));
  }
  if (request.options.verdict_log != nullptr) {
    throw UsageError(kOperation, "verdict_log", "a decoder's texts", "an encoder-decoder's");
  }
}

void check_request(const GenerateRequest& request, const Model& model,
                   const Speculation& speculation) {
  check_encoder_prompt(request, model);
  constexpr const char* kOperation = "generate";
  const int context = model.summary().context_length;
  const int vocabulary = model.summary().vocabulary_size;
  if (request.prompt.empty()) {
    throw Error(kOperation, "prompt", "at least one token", "none");
  }
  if (static_cast<std::int64_t>(request.prompt.size()) >= context) {
    throw Error(kOperation, "prompt",
                fmt::format("fewer tokens than the model's context of {}", context),
                fmt::format("{}", request.prompt.size()));
  }
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= vocabulary) {
      throw Error(kOperation, "prompt", fmt::format("token ids below {}", vocabulary),
                  fmt::format("{}", id));
    }
  }
  const VerdictLog* log = request.options.verdict_log;
  if (log != nullptr && !log->belongs_to(model)) {
    throw UsageError(kOperation, "verdict_log", "a log opened for the generator's target",
                     "one opened for another model");
  }
  // Refuses sampling parameters out of range before anything is run.
  const Transform transform(request.options.sampling, vocabulary);
  if (speculation.acceptance->needs().greedy && !transform.greedy()) {
    throw UsageError(kOperation, "temperature", fmt::format("0 with the rule {}", speculation.rule),
                     fmt::format("{}", request.options.sampling.temperature));
  }
  const GenerateOptions& options = request.options;
  if (options.opening_end != kNoToken && !model.tokenizer().has(options.opening_end)) {
    throw Error(kOperation, "opening_end", "a token of the model",
                fmt::format("{}", options.opening_end));
  }
  if (options.grammar != nullptr || options.opening_end != kNoToken) {
    model.token_trie();  // built here, not while other texts wait
  }
  if (request.options.max_tokens < 0) {
    throw UsageError(kOperation, "max_tokens", "0 or more",
                     fmt::format("{}", request.options.max_tokens));
  }
  if (request.options.log_probs < -1 || request.options.log_probs > vocabulary) {
    throw UsageError(kOperation, "log_probs",
                     fmt::format("-1, or at most the vocabulary's {} tokens", vocabulary),
                     fmt::format("{}", request.options.log_probs));
  }
}

Generation::Generation(SequenceId id, GenerateRequest request, const Model& model,
                       std::shared_ptr<const Speculation> speculation, GrammarMatchers& matchers,
                       Clock::time_point asked)
    : request_(std::move(request)),
      model_(&model),
      speculation_(std::move(speculation)),
      chance_(request_.options.seed),
      stream_(id, request_.prompt,
              Transform(request_.options.sampling, model.summary().vocabulary_size), chance_,
              {.drafter = speculation_->drafter.get(),
               .acceptance = speculation_->acceptance.get(),
               .shape = speculation_->shape,
               .stop = speculation_->stop.get()}),
      decoding_(model.tokenizer().start_decoding(!request_.options.shown_tokens.empty())),
      stop_strings_(stops_in_text(request_.options.stop_strings)),
      asked_(asked) {
  const GenerateOptions& options = request_.options;
  if (options.grammar != nullptr || options.opening_end != kNoToken) {
    stream_.history.constrain(matchers.of(
        options.grammar != nullptr ? options.grammar->compiled() : nullptr, model.token_trie(),
        spelled_tokens(), MatchedOpening{options.opening_end, options.max_opening}));
  }
  if (options.mask) {
    masks_ =
        std::make_shared<TextMasks>(options.mask, request_.prompt, model.summary().vocabulary_size);
    stream_.history.mask_by(masks_);
  }
  stream_.encoder_tokens = request_.encoder_prompt;
  decode_prompt(request_.prompt);
  stream_.max_total = std::min<std::int64_t>(stream_.n_prompt + request_.options.max_tokens,
                                             model.summary().context_length);
  stream_.finished = stream_.max_total <= stream_.n_prompt;
  reserve();
  if (const VerdictLog* log = request_.options.verdict_log) {
    recorder_.emplace(log->format(), request_.prompt, log->max_generated(stream_.n_prompt));
  }
}

bool Generation::commit(const Committed& committed) {
  const LogitRow logits = stream_.views.logits(committed.logits_node);
  // NaN is chosen only if all logits are NaN: such a row says nothing about any token.
  if (std::isnan(logits.at(committed.id))) {
    throw Error("generate", "logits", "numbers", "NaN (the model's weights may be broken)");
  }
  if (masks_ != nullptr) follow_mask(committed.id);
  if (std::exchange(owes_draft_, false)) show_draft();
  const bool is_constrained = stream_.history.is_constrained();
  if (masks_ != nullptr || is_constrained) of_round_.push_back(committed.id);
  const bool is_complete = is_constrained && follow_grammar();
  result_.ids.push_back(committed.id);
  if (recorder_) recorder_->add(committed.id, logits.values());
  if (request_.options.keep_logits) {
    const std::span<const float> values = logits.values();
    result_.logits.insert(result_.logits.end(), values.begin(), values.end());
  }
  double log_prob = 0;
  if (request_.options.log_probs >= 0 && request_.options.on_token) {
    log_probs(logits, committed.id, request_.options.log_probs, log_prob, top_);
  }
  const bool ends = ends_text(committed.id);
  const std::size_t n_before = result_.text.size();
  decoded_.clear();
  if (!ends && is_text(committed.id)) decoding_->push(committed.id, decoded_);
  take_decoded();
  const bool stops = ends || stop_strings_.found() || is_complete;
  if (stops) release_rest();
  if (stops) result_.finish_reason = FinishReason::stop;
  if (request_.options.on_token) {
    request_.options.on_token({.id = committed.id,
                               .origin = origin(committed),
                               .rank = committed.node >= 0 ? stream_.tree.rank(committed.node) : -1,
                               .text = std::string_view(result_.text).substr(n_before),
                               .ends = ends,
                               .log_prob = log_prob,
                               .top = top_});
  }
  return stops;
}

// Throws the mask's error from anywhere in the round; and Error for a token that the mask forbids,
// since then no token was possible.
void Generation::follow_mask(TokenId id) {
  const bool is_allowed = masks_->is_allowed(stream_.history.generated(), of_round_, id);
  if (masks_->failure()) std::rethrow_exception(masks_->failure());
  if (is_allowed) return;
  throw Error("follow mask", "next token", "one that the mask lets follow",
              "none in the vocabulary with a probability");
}

// Throws Error if the grammar forbids the round's last token, since then no token was possible.
// Returns true if the text is complete and nothing may follow.
bool Generation::follow_grammar() {
  GrammarMatcher& matcher = stream_.history.matcher();
  const int state = stream_.history.state_behind(of_round_);
  if (state == GrammarMatcher::kNotAllowed) {
    const std::string failure = matcher.failure();
    if (!failure.empty()) throw Error("follow grammar", "text", failure);
    throw Error("follow grammar", "next token", "one that the grammar lets follow",
                "none in the vocabulary with a probability");
  }
  if (!matcher.complete(state)) return false;
  const std::span<const std::uint64_t> allowed = matcher.allowed(state);
  return std::all_of(allowed.begin(), allowed.end(), [](std::uint64_t word) { return word == 0; });
}

void Generation::begin_round() {
  of_round_.clear();
  if (masks_ != nullptr) masks_->settle(stream_.history.generated());
  const auto now = Clock::now();
  if (!began_) began_ = now;
  drafts_now_ = stream_.n_to_run() == 0;
  if (drafts_now_ && !drafting_) drafting_ = now;
  owes_draft_ = drafts_now_ && request_.options.on_draft;
  accepted_before_ = stream_.counts.accepted;
  passes_before_ = drafter() ? drafter()->n_passes() : 0;
}

void Generation::end_round(const RoundTimes& times) {
  if (!drafts_now_) return;
  GenerateStatistics& statistics = result_.statistics;
  statistics.draft_seconds += times.draft;
  statistics.target_seconds += times.forward;
  statistics.verify_seconds += times.verify;
  if (drafter()) statistics.drafter_passes += drafter()->n_passes() - passes_before_;
  result_.accepted_per_round.push_back(
      static_cast<int>(stream_.counts.accepted - accepted_before_));
}

void Generation::end(FinishReason why) {
  stream_.finished = true;
  result_.finish_reason = why;
}

void Generation::fail() {
  stream_.finished = true;
  recorder_.reset();
}

GenerateResult Generation::finish() {
  release_rest();
  // Text held back may complete a stop string once it is released.
  if (stop_strings_.found()) {
    result_.finish_reason = FinishReason::stop;
    result_.stop_string = stop_strings_.which();
  } else if (result_.finish_reason == FinishReason::stop) {
    const auto at = std::find(stop_tokens_.begin(), stop_tokens_.end(), result_.ids.back());
    if (at != stop_tokens_.end()) result_.stop_string = model_->tokenizer().piece(*at);
  }
  GenerateStatistics& statistics = result_.statistics;
  statistics.reused = stream_.n_reused;
  statistics.target_passes = stream_.counts.target_passes;
  statistics.drafted = stream_.counts.drafted;
  statistics.accepted = stream_.counts.accepted;
  statistics.rejected = stream_.counts.rejected;
  statistics.emitted = static_cast<std::int64_t>(result_.ids.size());
  const RuleCost& cost = stream_.counts.rule_cost;
  statistics.rule_kl = cost.kl;
  statistics.rule_tv = cost.total_variation;
  statistics.deferral_rate =
      result_.ids.empty() ? 0 : cost.deferral / static_cast<double>(result_.ids.size());
  const auto now = Clock::now();
  const auto seconds = [](auto begin, auto end) {
    return std::chrono::duration<double>(end - begin).count();
  };
  if (began_) statistics.prefill_seconds = seconds(*began_, drafting_.value_or(now));
  statistics.prefill_seconds += stream_.encoder_seconds;
  if (drafting_) statistics.decode_seconds = seconds(*drafting_, now);
  if (recorder_) request_.options.verdict_log->append(recorder_->text());
  return std::move(result_);
}

bool Generation::ends_text(TokenId id) const {
  const auto holds = [id](const std::vector<TokenId>& ids) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  return holds(request_.options.stop_tokens) || holds(stop_tokens_) ||
         (!request_.options.ignore_eos && holds(model_->end_tokens()));
}

// Many matrices have more rows than the vocabulary has tokens; such a row's id has no text.
bool Generation::is_text(TokenId id) const {
  const Tokenizer& tokenizer = model_->tokenizer();
  if (!tokenizer.has(id)) return false;
  const std::vector<TokenId>& shown = request_.options.shown_tokens;
  return !tokenizer.is_special(id) || std::find(shown.begin(), shown.end(), id) != shown.end();
}

// Shown special tokens, which a grammar may spell by one token each, besides plain tokens.
std::vector<SpelledToken> Generation::spelled_tokens() const {
  std::vector<SpelledToken> spelled;
  const TokenTrie& trie = model_->token_trie();
  for (const TokenId id : request_.options.shown_tokens) {
    const bool is_known = id >= 0 && id < trie.n_ids() && model_->tokenizer().has(id) &&
                          !trie.is_end(id) && trie.bytes(id).empty();
    if (!is_known || model_->tokenizer().piece(id).empty()) continue;
    spelled.push_back({id, std::string(model_->tokenizer().piece(id))});
  }
  return spelled;
}

// Keeps the stop strings that can occur in the text. A special token's spelling cannot: there the
// token itself stops.
std::vector<std::string> Generation::stops_in_text(const std::vector<std::string>& stops) {
  std::vector<std::string> in_text;
  for (const std::string& stop : stops) {
    const std::optional<TokenId> token = model_->tokenizer().find(stop);
    if (token && model_->tokenizer().is_special(*token)) {
      stop_tokens_.push_back(*token);
    } else {
      in_text.push_back(stop);
    }
  }
  return in_text;
}

// Prepares decoding after the prompt: the first word keeps a blank that it would lose at the
// beginning of a text, and a character begun in the prompt is finished. The prompt's special tokens
// are not shown.
void Generation::decode_prompt(std::span<const TokenId> prompt) {
  const auto alone = model_->tokenizer().start_decoding(false);
  std::string settled;
  for (const TokenId id : prompt) {
    if (!model_->tokenizer().has(id) || model_->tokenizer().is_special(id)) continue;
    decoding_->push(id, settled);
    alone->push(id, settled);
    settled.clear();
  }
  alone->finish(held_of_prompt_);
}

// Moves decoded bytes to the text, without the prompt's part. A run of byte tokens at the prompt's
// end is held back, even whole characters, until the run ends.
void Generation::take_decoded() {
  if (!held_of_prompt_.empty() && !decoded_.empty()) {
    if (decoded_.starts_with(held_of_prompt_)) decoded_.erase(0, held_of_prompt_.size());
    held_of_prompt_.clear();
  }
  stop_strings_.push(decoded_, result_.text);
}

// Releases the text held back at the end: unfinished characters, beginnings of stop strings. A
// second call does nothing, since a decoding can be finished once.
void Generation::release_rest() {
  if (std::exchange(released_, true)) return;
  decoded_.clear();
  decoding_->finish(decoded_);
  take_decoded();
  stop_strings_.finish(result_.text);
}

// Reserves memory for what is kept per token and round, so that a commit allocates nothing.
void Generation::reserve() {
  // Four times the bytes per token of running text; longer text reallocates.
  constexpr std::size_t kBytesPerToken = 16;
  if (stream_.finished) return;
  const auto n_tokens = static_cast<std::size_t>(
      std::min(stream_.max_total - stream_.n_prompt, kReservedAhead_tokens));
  result_.ids.reserve(n_tokens);
  result_.accepted_per_round.reserve(n_tokens);
  result_.text.reserve(n_tokens * kBytesPerToken);
}

void Generation::show_draft() {
  draft_tokens_.clear();
  draft_parents_.clear();
  const DraftTree& tree = stream_.tree;
  for (int index = 1; index <= tree.n_drafted(); ++index) {
    const DraftNode& node = tree.node(index);
    draft_tokens_.push_back(node.token);
    draft_parents_.push_back(node.parent - 1);  // the root is not listed
  }
  draft_accepted_.assign(draft_tokens_.size(), 0);
  for (const int node : stream_.verdict.path) {
    draft_accepted_[static_cast<std::size_t>(node) - 1] = 1;
  }
  request_.options.on_draft({draft_tokens_, draft_parents_, draft_accepted_});
}

TokenOrigin Generation::origin(const Committed& committed) const {
  if (committed.node >= 0) return TokenOrigin::accepted;
  if (drafter() == nullptr || stream_.tree.n_drafted() == 0) return TokenOrigin::plain;
  return stream_.verdict.corrected ? TokenOrigin::corrected : TokenOrigin::bonus;
}

}  // namespace outrider
