// SPDX-License-Identifier: Apache-2.0
#include "speculate/decoder.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>

#include "model/prefill.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void Decoder::open_sequence(Stream& stream) const {
  stream.sequence.reset();  // releases its pages before others are taken
  stream.sequence = target_->open({.encoder_tokens = stream.encoder_tokens,
                                   .n_reserved = stream.n_reserved,
                                   .n_tokens = static_cast<int>(stream.tokens.size())});
}

void Decoder::open(Stream& stream) const {
  open_target(stream, nullptr);
  begin_drafter(stream, nullptr);
}

void Decoder::open_behind(Stream& stream, const KeptText& earlier) const {
  open_target(stream, &earlier);
  begin_drafter(stream, &earlier);
}

void Decoder::open_target(Stream& stream, const KeptText* earlier) const {
  reserve(stream);
  open_sequence(stream);
  stream.n_run = earlier != nullptr ? take_over(stream, *earlier) : 0;
  stream.n_reused = std::min(static_cast<std::int64_t>(stream.n_run), stream.n_prompt);
}

namespace {

void begin_its_drafter(Stream& stream, const KeptText* earlier) {
  Drafter* const drafter = stream.drafting.drafter;
  if (drafter == nullptr) return;
  const Context context = stream.context();
  try {
    if (earlier != nullptr && !stream.has_other_drafter(*earlier)) {
      drafter->begin_behind(context, earlier->id, stream.n_run);
    } else {
      drafter->begin(context);
      const bool runs = stream.n_run > 0 && !stream.drafter_is_deferred();
      if (runs) drafter->prefill(context, context.tokens.first(stream.n_run), {});
    }
  } catch (...) {
    drafter->end(stream.id);
    throw;
  }
}

}  // namespace

void Decoder::begin_drafter(Stream& stream, const KeptText* earlier) const {
  const bool has_encoder = !stream.encoder_tokens.empty();
  const Clock::time_point began = Clock::now();
  if (has_encoder) target_->encode(*stream.sequence);
  begin_its_drafter(stream, earlier);
  if (has_encoder) stream.encoder_seconds += seconds_between(began, Clock::now());
}

void Decoder::close(Stream& stream) const {
  end(stream);
  stream.sequence.reset();
  stream.n_run = 0;
}

bool Decoder::begin(Stream& stream, const std::function<bool()>& cancelled) {
  open(stream);
  return run_all(stream, cancelled);
}

bool Decoder::begin_behind(Stream& stream, const KeptText& earlier,
                           const std::function<bool()>& cancelled) {
  open_behind(stream, earlier);
  return run_all(stream, cancelled);
}

bool Decoder::run_all(Stream& stream, const std::function<bool()>& cancelled) {
  while (stream.n_to_run() > 0) {
    if (cancelled && cancelled()) return false;
    const StreamShare share{.stream = &stream,
                            .n_to_run = std::min<std::size_t>(stream.n_to_run(), kPrefillRows)};
    round({&share, 1}, {});
  }
  return true;
}

// Forks the earlier text's sequence into the stream, as far as the texts are equal and both target
// and drafter still have them. Returns the number of tokens taken over.
std::size_t Decoder::take_over(Stream& stream, const KeptText& earlier) const {
  int n_common = 0;
  // With another context length even the first tokens may have other keys
  // (LanguageModel::context_of).
  if (target_->context_of(*stream.sequence) == target_->context_of(*earlier.sequence)) {
    const auto differ = std::mismatch(earlier.tokens.begin(), earlier.tokens.end(),
                                      stream.tokens.begin(), stream.tokens.end() - 1);
    n_common = std::min(static_cast<int>(differ.first - earlier.tokens.begin()),
                        earlier.sequence->n_kept());
    stream.sequence = earlier.sequence->fork();
  }
  // What the drafter must see again, the target runs again; it keeps nothing after that point.
  const Drafter* const drafter = stream.drafting.drafter;
  for (;;) {
    int n_run = n_common;
    if (drafter != nullptr && !stream.drafter_is_deferred()) {
      const auto n_all = static_cast<std::size_t>(n_run);
      n_run = static_cast<int>(stream.has_other_drafter(earlier)
                                   ? (drafter->traits().reads_features ? 0 : n_all)
                                   : drafter->reusable(earlier.id, n_all));
    }
    n_common = stream.sequence->rewind(n_run);
    if (n_common == n_run) break;
  }
  return static_cast<std::size_t>(n_common);
}

void Decoder::reserve(Stream& stream) const {
  if (stream.drafting.acceptance == nullptr) stream.drafting = drafting_;
  const std::int64_t n_tokens = std::max<std::int64_t>(
      static_cast<std::int64_t>(stream.tokens.size()),
      std::min<std::int64_t>({stream.max_total, target_->config().context_length,
                              stream.n_prompt + kReservedAhead_tokens}));
  const TreeShape* const shape = stream.drafting.shape.get();
  const int n_drafted = shape != nullptr ? shape->n_nodes() : 0;
  stream.tokens.reserve(static_cast<std::size_t>(n_tokens));
  stream.history.reserve(static_cast<std::size_t>(n_tokens));
  stream.verdict.reserve(n_drafted);
  stream.n_reserved = static_cast<int>(n_tokens) + n_drafted;
}

void Decoder::end(const Stream& stream) {
  if (stream.drafting.drafter != nullptr) stream.drafting.drafter->end(stream.id);
}

void Decoder::end(const KeptText& kept) {
  if (kept.drafter != nullptr) kept.drafter->end(kept.id);
}

// Lists the drafters of the round's streams, each once, and the hidden states that they read.
void Decoder::list_drafters() {
  drafters_.clear();
  feature_layers_.clear();
  const auto add = [this](Drafter* drafter) {
    const auto is_same = [drafter](const DrafterShare& share) { return share.drafter == drafter; };
    if (drafter == nullptr || std::any_of(drafters_.begin(), drafters_.end(), is_same)) return;
    drafters_.push_back(
        {.drafter = drafter, .first_layer = static_cast<int>(feature_layers_.size())});
    const std::span<const int> layers = drafter->feature_layers();
    feature_layers_.insert(feature_layers_.end(), layers.begin(), layers.end());
  };
  for (const StreamShare& share : drafted_) add(share.stream->drafting.drafter);
  for (const StreamShare& share : running_) add(share.stream->drafting.drafter);
}

// The drafter's columns of feature rows that hold all layers of the pass.
FeatureRows Decoder::columns_of(const Drafter* drafter, std::span<const float> values) const {
  const auto n_layers = static_cast<int>(feature_layers_.size());
  if (drafter == nullptr || n_layers == 0) return {};
  const auto at =
      std::find_if(drafters_.begin(), drafters_.end(),
                   [drafter](const DrafterShare& share) { return share.drafter == drafter; });
  const int layer_width = output_.feature_width / n_layers;
  const auto n_own = static_cast<int>(drafter->feature_layers().size());
  if (n_own == 0) return {};
  return {.values = values,
          .stride = output_.feature_width,
          .first = at->first_layer * layer_width,
          .width = n_own * layer_width};
}

// Fills features_ with the rows of every stream's root and accepted nodes.
void Decoder::gather_features() {
  features_.assign(drafted_.size(), {});
  if (feature_layers_.empty()) return;
  const auto width = static_cast<std::size_t>(output_.feature_width);
  std::size_t n_rows = 0;
  for (const StreamShare& share : drafted_) n_rows += 1 + share.stream->verdict.path.size();
  feature_values_.clear();
  feature_values_.reserve(n_rows * width);  // the spans below point into it
  for (std::size_t index = 0; index < drafted_.size(); ++index) {
    const Stream& stream = *drafted_[index].stream;
    const std::size_t first = feature_values_.size();
    const auto add = [&](int node) {
      const std::span<const float> row = output_.feature_row(first_row_[index] + node);
      feature_values_.insert(feature_values_.end(), row.begin(), row.end());
    };
    add(0);
    for (const int node : stream.verdict.path) add(node);
    features_[index] =
        columns_of(stream.drafting.drafter, std::span<const float>(feature_values_).subspan(first));
  }
}

Budget Decoder::draft_budget(const StreamShare& share) const {
  const Stream& stream = *share.stream;
  const TreeShape& shape = *stream.drafting.shape;
  const auto n_tokens = static_cast<std::int64_t>(stream.tokens.size());
  // A round commits up to one token more than it drafts, and the deepest node needs a position.
  const std::int64_t wanted = stream.max_total - n_tokens - 1;
  const std::int64_t room = target_->context_of(*stream.sequence) - n_tokens;
  const std::int64_t most = drafts_fit_ ? std::min(shape.depth(), share.draft_depth) : 0;
  const std::int64_t depth = std::clamp<std::int64_t>(std::min(wanted, room), 0, most);
  return {.depth = static_cast<int>(depth),
          .n_nodes = drafts_fit_ ? shape.n_nodes() : 0,
          .scratch_depth = scratch_fits_ && share.draft_depth > 0
                               ? static_cast<int>(std::max<std::int64_t>(room, 0))
                               : 0};
}

RoundTimes Decoder::round(std::span<Stream* const> streams, const CommitFunction& on_commit) {
  shares_.clear();
  for (Stream* const stream : streams) shares_.push_back({.stream = stream});
  return round(shares_, on_commit);
}

RoundTimes Decoder::round(std::span<const StreamShare> shares, const CommitFunction& on_commit) {
  const auto started = Clock::now();
  drafted_.clear();
  running_.clear();
  for (const StreamShare& share : shares) {
    (share.stream->n_to_run() > 0 ? running_ : drafted_).push_back(share);
  }
  list_drafters();
  for (const StreamShare& share : drafted_) make_long(*share.stream);
  limit_drafts_to_memory();
  draft();
  const auto drafted = Clock::now();
  run_target();
  const auto passed = Clock::now();
  verify();
  const auto verified = Clock::now();
  commit(on_commit);
  inform();
  inform_of_prompts();
  return {.began = started,
          .draft = seconds_between(started, drafted),
          .forward = seconds_between(drafted, passed),
          .verify = seconds_between(passed, verified)};
}

// Runs a text again that has outgrown its sequence (LanguageModel::context_of). Drafts end where
// the sequence ends, so no pass has rows of both. If a step throws, the next call continues.
void Decoder::make_long(Stream& stream) {
  const int n_tokens = static_cast<int>(stream.tokens.size());
  if (n_tokens > target_->config().context_length) return;  // the pass reports it
  if (stream.sequence == nullptr || n_tokens > target_->context_of(*stream.sequence)) {
    open_sequence(stream);
  }
  const auto n_kept = static_cast<std::size_t>(stream.sequence->n_kept());
  const auto missing =
      std::span<const TokenId>(stream.tokens).first(stream.tokens.size() - 1).subspan(n_kept);
  if (!missing.empty()) prefill(*target_, *stream.sequence, missing, output_);
}

// Limits this round's drafts by the memory of the KV cache and by the shapes, never by the drafted
// tokens: that would bias the output.
void Decoder::limit_drafts_to_memory() {
  const auto fits = [this](auto n_drafted) {
    growths_.clear();
    for (const StreamShare& share : drafted_) {
      growths_.push_back(share.stream->growth(1 + n_drafted(*share.stream)));
    }
    for (const StreamShare& share : running_) {
      growths_.push_back(share.stream->growth(static_cast<int>(share.n_to_run)));
    }
    return target_->fits(growths_);
  };
  scratch_fits_ = true;
  drafts_fit_ = true;
  if (drafters_.empty() || fits([](const Stream&) { return kMaxDraftNodes; })) return;
  scratch_fits_ = false;
  drafts_fit_ = fits([](const Stream& stream) {
    return stream.drafting.drafter == nullptr ? 0 : stream.drafting.shape->n_nodes();
  });
}

// Resets every tree to its root and lets the drafters add to them.
void Decoder::draft() {
  contexts_.clear();
  for (const StreamShare& share : drafted_) {
    Stream& stream = *share.stream;
    stream.tree.reset(stream.tokens.back(), static_cast<std::int64_t>(stream.tokens.size()));
    contexts_.push_back(stream.context());
  }
  for (DrafterShare& drafting : drafters_) {
    jobs_.clear();
    for (std::size_t index = 0; index < drafted_.size(); ++index) {
      Stream& stream = *drafted_[index].stream;
      const Acceptance& acceptance = *stream.drafting.acceptance;
      if (stream.drafting.drafter != drafting.drafter) continue;
      jobs_.push_back({.context = &contexts_[index],
                       .budget = draft_budget(drafted_[index]),
                       .shape = stream.drafting.shape.get(),
                       .stop = stream.drafting.stop,
                       .worth = drafted_[index].worth,
                       .choice = drafted_[index].choice,
                       .chance = stream.chance,
                       .noise = acceptance.draft_noise(),
                       .record_raw = acceptance.needs().raw_draft,
                       .tree = &stream.tree,
                       .judged = stream.sequence.get(),
                       .asks_at_leaves = acceptance.needs().leaf_draft,
                       .recent_only = drafted_[index].recent_only});
    }
    if (jobs_.empty()) continue;
    const auto began = Clock::now();
    drafting.drafter->propose(jobs_);
    drafting.seconds = seconds_between(began, Clock::now());
    drafting.began = began;
  }
}

double Decoder::draft_seconds(const Drafter* drafter) const {
  const auto at =
      std::find_if(drafters_.begin(), drafters_.end(),
                   [drafter](const DrafterShare& share) { return share.drafter == drafter; });
  return at == drafters_.end() ? 0 : at->seconds + at->learn_seconds;
}

// One pass over all trees with their scratch nodes, whose rows all get logits, and over tokens of
// prompts, whose rows get none.
void Decoder::run_target() {
  blocks_.clear();
  first_logits_.clear();
  first_row_.clear();
  int n_logits = 0;
  for (const StreamShare& share : drafted_) {
    Stream& stream = *share.stream;
    first_logits_.push_back(n_logits);
    first_row_.push_back(blocks_.n_rows());
    blocks_.begin_block(*stream.sequence);
    for (const DraftNode& node : stream.tree.nodes()) {
      blocks_.add(node.token, node.parent);
      blocks_.ask();
    }
    n_logits += stream.tree.n_nodes();
  }
  for (const StreamShare& share : running_) {
    const Stream& stream = *share.stream;
    blocks_.begin_block(*stream.sequence);
    blocks_.add_chain(
        std::span<const TokenId>(stream.tokens).subspan(stream.n_run, share.n_to_run));
  }
  target_->forward(blocks_.blocks(), {.logits = blocks_.rows(), .feature_layers = feature_layers_},
                   output_);
}

// Computes every tree's verdict from the rows of the pass.
void Decoder::verify() {
  for (std::size_t index = 0; index < drafted_.size(); ++index) {
    Stream& stream = *drafted_[index].stream;
    const Acceptance& acceptance = *stream.drafting.acceptance;
    const RuleNeeds needs = acceptance.needs();
    stream.views.reset(stream.tree, output_, first_logits_[index], stream.tokens,
                       stream.counts.rule_cost.kl);
    if (stream.drafting.drafter != nullptr && needs.leaf_draft) {
      stream.views.ask_at_leaves(*stream.drafting.drafter, contexts_[index], needs.raw_draft);
    }
    acceptance.verify(stream.tree, stream.views, *stream.chance, stream.verdict);
  }
}

// Keeps the root and the accepted path in the target's sequences and commits the tokens.
void Decoder::commit(const CommitFunction& on_commit) {
  for (const StreamShare& share : drafted_) {
    Stream& stream = *share.stream;
    path_.reserve(static_cast<std::size_t>(stream.tree.n_nodes()));  // the longest possible path
    path_.assign(1, 0);
    path_.insert(path_.end(), stream.verdict.path.begin(), stream.verdict.path.end());
    stream.sequence->keep(path_);
    commit_verdict(stream, on_commit);
    stream.n_run = stream.tokens.size() - 1;
  }
}

// Tells the drafters the results of their drafts.
void Decoder::inform() {
  if (drafters_.empty()) return;
  contexts_.clear();
  for (const StreamShare& share : drafted_) contexts_.push_back(share.stream->context());
  gather_features();
  for (DrafterShare& drafting : drafters_) {
    results_.clear();
    for (std::size_t index = 0; index < drafted_.size(); ++index) {
      const Stream& stream = *drafted_[index].stream;
      if (stream.drafting.drafter != drafting.drafter) continue;
      results_.push_back({.context = &contexts_[index],
                          .tree = &stream.tree,
                          .verdict = &stream.verdict,
                          .features = features_[index],
                          .target = &output_,
                          .first_row = first_logits_[index]});
    }
    if (results_.empty()) continue;
    const auto began = Clock::now();
    drafting.drafter->observe(results_);
    if (drafting.seconds > 0) drafting.learn_seconds = seconds_between(began, Clock::now());
  }
}

// Keeps the prompt tokens that were run, and shows their features to the drafters.
void Decoder::inform_of_prompts() {
  int first_row = blocks_.n_rows();
  for (const StreamShare& share : running_) first_row -= static_cast<int>(share.n_to_run);
  for (const StreamShare& share : running_) {
    Stream& stream = *share.stream;
    path_.resize(share.n_to_run);
    std::iota(path_.begin(), path_.end(), 0);
    stream.sequence->keep(path_);
    const auto tokens =
        std::span<const TokenId>(stream.tokens).subspan(stream.n_run, share.n_to_run);
    stream.n_run += share.n_to_run;
    Drafter* const drafter = stream.drafting.drafter;
    if (drafter != nullptr && !stream.drafter_is_deferred()) {
      const auto width = static_cast<std::size_t>(output_.feature_width);
      const std::span<const float> rows =
          feature_layers_.empty()
              ? std::span<const float>()
              : std::span<const float>(output_.features)
                    .subspan(static_cast<std::size_t>(first_row) * width, share.n_to_run * width);
      drafter->prefill(stream.context(), tokens, columns_of(drafter, rows));
    }
    first_row += static_cast<int>(share.n_to_run);
  }
}

void Decoder::run_to_end(std::vector<Stream*>& streams, const CommitFunction& on_commit,
                         const RoundHooks& hooks) {
  const auto drop_finished = [&streams] {
    std::erase_if(streams, [](const Stream* stream) { return stream->finished; });
  };
  for (drop_finished(); !streams.empty(); drop_finished()) {
    if (hooks.before) {
      hooks.before(streams);
      drop_finished();
      if (streams.empty()) return;
    }
    const RoundTimes times = round(streams, on_commit);
    if (hooks.after) hooks.after(streams, times);
  }
}

void Decoder::commit_verdict(Stream& stream, const CommitFunction& on_commit) {
  ++stream.counts.target_passes;
  stream.counts.drafted += stream.tree.n_drafted();
  int parent = 0;
  std::size_t position = 0;
  const auto commit_token = [&](TokenId id, int node) {
    const RuleCost& cost = stream.verdict.costs[position++];
    stream.counts.rule_cost.kl += cost.kl;
    stream.counts.rule_cost.total_variation += cost.total_variation;
    stream.counts.rule_cost.deferral += cost.deferral;
    stream.tokens.push_back(id);
    if (node >= 0) ++stream.counts.accepted;
    const bool stop = on_commit(stream, {.id = id, .node = node, .logits_node = parent});
    stream.finished = stop || static_cast<std::int64_t>(stream.tokens.size()) >= stream.max_total;
    parent = node;
  };
  const std::size_t n_before = stream.tokens.size();
  for (const int node : stream.verdict.path) {
    if (stream.finished) break;
    commit_token(stream.tree.node(node).token, node);
  }
  if (!stream.finished) {
    if (stream.verdict.corrected) ++stream.counts.rejected;
    commit_token(stream.verdict.next, -1);
  }
  // Not earlier: until the round is over, the views read the history from its beginning.
  for (std::size_t index = n_before; index < stream.tokens.size(); ++index) {
    stream.history.add_generated(stream.tokens[index]);
  }
}

}  // namespace outrider
