#include "speculate/decoder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "model/prefill.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Stream::Stream(SequenceId stream_id, std::span<const TokenId> prompt, Transform stream_transform,
               Chance& stream_chance)
    : id(stream_id),
      tokens(prompt.begin(), prompt.end()),
      n_prompt(static_cast<std::int64_t>(prompt.size())),
      transform(std::move(stream_transform)),
      chance(&stream_chance),
      views(transform, history) {
  history.add_prompt(prompt);
}

Decoder::Decoder(LanguageModel& target, Drafter* drafter, const Acceptance& acceptance,
                 std::shared_ptr<const TreeShape> shape, const StopRule* stop)
    : target_(&target),
      drafter_(drafter),
      acceptance_(&acceptance),
      shape_(std::move(shape)),
      stop_(stop) {}

void Decoder::open_sequence(Stream& stream) const {
  stream.sequence.reset();  // gives its pages back first
  stream.sequence = target_->open(
      {.n_reserved = stream.n_reserved, .n_tokens = static_cast<int>(stream.tokens.size())});
}

bool Decoder::begin(Stream& stream, const std::function<bool()>& cancelled) {
  reserve(stream);
  open_sequence(stream);
  if (drafter_ != nullptr) drafter_->begin(stream.context());
  // One token short: the last one roots the first round, so that its logits come from the same pass
  // as any other's.
  std::span<const TokenId> rest =
      std::span<const TokenId>(stream.tokens).first(stream.tokens.size() - 1);
  while (!rest.empty()) {
    if (cancelled && cancelled()) return false;
    const auto step = rest.first(std::min<std::size_t>(rest.size(), kPrefillRows));
    prefill(*target_, *stream.sequence, step, output_, feature_layers());
    if (drafter_ != nullptr) {
      drafter_->prefill(stream.context(), step, prompt_features(step.size()));
    }
    rest = rest.subspan(step.size());
  }
  return true;
}

void Decoder::reserve(Stream& stream) const {
  const std::int64_t n_tokens = std::max<std::int64_t>(
      stream.n_prompt, std::min<std::int64_t>({stream.max_total, target_->config().context_length,
                                               stream.n_prompt + kReservedAhead_tokens}));
  const int n_drafted = shape_ != nullptr ? shape_->n_nodes() : 0;
  stream.tokens.reserve(static_cast<std::size_t>(n_tokens));
  stream.history.reserve(static_cast<std::size_t>(n_tokens));
  stream.verdict.reserve(n_drafted);
  stream.n_reserved = static_cast<int>(n_tokens) + n_drafted;
}

void Decoder::end(Stream& stream) {
  if (drafter_ != nullptr) drafter_->end(stream.id);
}

std::span<const int> Decoder::feature_layers() const {
  return drafter_ != nullptr ? drafter_->feature_layers() : std::span<const int>();
}

// What the drafter reads of the n_rows tokens of the prompt that were run last.
FeatureRows Decoder::prompt_features(std::size_t n_rows) const {
  const int width = output_.feature_width;
  return {
      .values =
          std::span<const float>(output_.features).first(n_rows * static_cast<std::size_t>(width)),
      .stride = width,
      .first = 0,
      .width = width};
}

// Fills features_: the rows of every stream's root and accepted nodes, of the pass over their
// trees.
void Decoder::gather_features(std::span<Stream* const> streams) {
  features_.assign(streams.size(), {});
  const auto width = static_cast<std::size_t>(output_.feature_width);
  if (width == 0) return;
  std::size_t n_rows = 0;
  for (const Stream* stream : streams) n_rows += 1 + stream->verdict.path.size();
  feature_values_.clear();
  feature_values_.reserve(n_rows * width);  // the spans below point into these
  int first_row = 0;
  for (std::size_t index = 0; index < streams.size(); ++index) {
    const std::size_t first = feature_values_.size();
    const auto add = [&](int node) {
      const std::span<const float> row = output_.feature_row(first_row + node);
      feature_values_.insert(feature_values_.end(), row.begin(), row.end());
    };
    add(0);
    for (const int node : streams[index]->verdict.path) add(node);
    features_[index] = {.values = std::span<const float>(feature_values_).subspan(first),
                        .stride = output_.feature_width,
                        .first = 0,
                        .width = output_.feature_width};
    first_row += streams[index]->tree.n_nodes();
  }
}

Budget Decoder::draft_budget(const Stream& stream) const {
  const auto n_tokens = static_cast<std::int64_t>(stream.tokens.size());
  // A round commits up to one token more than it drafts, and the deepest node needs a position.
  const std::int64_t wanted = stream.max_total - n_tokens - 1;
  const std::int64_t room = target_->context_of(*stream.sequence) - n_tokens;
  const std::int64_t depth = std::clamp<std::int64_t>(std::min(wanted, room), 0, shape_->depth());
  return {.depth = static_cast<int>(depth),
          .n_nodes = shape_->n_nodes(),
          .scratch_depth = static_cast<int>(std::max<std::int64_t>(room, 0))};
}

RoundTimes Decoder::round(std::span<Stream* const> streams, const CommitFunction& on_commit) {
  const auto started = Clock::now();
  for (Stream* stream : streams) make_long(*stream);
  draft(streams);
  const auto drafted = Clock::now();
  run_target(streams);
  const auto passed = Clock::now();
  verify(streams);
  const auto verified = Clock::now();
  commit(streams, on_commit);
  inform(streams);
  return {.draft = seconds_between(started, drafted),
          .forward = seconds_between(drafted, passed),
          .verify = seconds_between(passed, verified)};
}

// Runs a text anew that has outgrown its sequence (LanguageModel::context_of). Drafts end where the
// sequence does, so that no pass has rows of both. Where a step throws, the next call goes on.
void Decoder::make_long(Stream& stream) {
  const int n_tokens = static_cast<int>(stream.tokens.size());
  if (n_tokens > target_->config().context_length) return;  // the pass will say so
  if (stream.sequence == nullptr || n_tokens > target_->context_of(*stream.sequence)) {
    open_sequence(stream);
  }
  const auto n_kept = static_cast<std::size_t>(stream.sequence->n_kept());
  const auto missing =
      std::span<const TokenId>(stream.tokens).first(stream.tokens.size() - 1).subspan(n_kept);
  if (!missing.empty()) prefill(*target_, *stream.sequence, missing, output_);
}

// Resets every tree to its root and lets the drafter add to it.
void Decoder::draft(std::span<Stream* const> streams) {
  contexts_.clear();
  jobs_.clear();
  for (Stream* stream : streams) {
    stream->tree.reset(stream->tokens.back(), static_cast<std::int64_t>(stream->tokens.size()));
    contexts_.push_back(stream->context());
  }
  if (drafter_ == nullptr) return;
  for (std::size_t index = 0; index < streams.size(); ++index) {
    jobs_.push_back({.context = &contexts_[index],
                     .budget = draft_budget(*streams[index]),
                     .shape = shape_.get(),
                     .stop = stop_,
                     .chance = streams[index]->chance,
                     .noise = acceptance_->draft_noise(),
                     .record_raw = acceptance_->needs().raw_draft,
                     .tree = &streams[index]->tree,
                     .judged = streams[index]->sequence.get()});
  }
  drafter_->propose(jobs_);
}

// One pass over all trees, scratch nodes included; every row gets logits.
void Decoder::run_target(std::span<Stream* const> streams) {
  blocks_.clear();
  for (Stream* stream : streams) {
    blocks_.begin_block(*stream->sequence);
    for (const DraftNode& node : stream->tree.nodes()) {
      blocks_.add(node.token, node.parent);
      blocks_.ask();
    }
  }
  target_->forward(blocks_.blocks(), {.logits = blocks_.rows(), .feature_layers = feature_layers()},
                   output_);
}

// A verdict for every tree, from the rows of the pass.
void Decoder::verify(std::span<Stream* const> streams) {
  const RuleNeeds needs = acceptance_->needs();
  int first_row = 0;
  for (std::size_t index = 0; index < streams.size(); ++index) {
    Stream* const stream = streams[index];
    stream->views.reset(stream->tree, output_, first_row, stream->counts.rule_cost.kl);
    if (drafter_ != nullptr && needs.leaf_draft) {
      stream->views.ask_at_leaves(*drafter_, contexts_[index], needs.raw_draft);
    }
    first_row += stream->tree.n_nodes();
    acceptance_->verify(stream->tree, stream->views, *stream->chance, stream->verdict);
  }
}

// Keeps the root and the accepted path in the target's sequences, and commits the tokens.
void Decoder::commit(std::span<Stream* const> streams, const CommitFunction& on_commit) {
  for (Stream* stream : streams) {
    path_.reserve(static_cast<std::size_t>(stream->tree.n_nodes()));  // the longest path there is
    path_.assign(1, 0);
    path_.insert(path_.end(), stream->verdict.path.begin(), stream->verdict.path.end());
    stream->sequence->keep(path_);
    commit_verdict(*stream, on_commit);
  }
}

// Tells the drafter what became of its drafts.
void Decoder::inform(std::span<Stream* const> streams) {
  if (drafter_ == nullptr) return;
  contexts_.clear();
  for (const Stream* stream : streams) contexts_.push_back(stream->context());
  gather_features(streams);
  results_.clear();
  int first_row = 0;
  for (std::size_t index = 0; index < streams.size(); ++index) {
    results_.push_back({.context = &contexts_[index],
                        .tree = &streams[index]->tree,
                        .verdict = &streams[index]->verdict,
                        .features = features_[index],
                        .target = &output_,
                        .first_row = first_row});
    first_row += streams[index]->tree.n_nodes();
  }
  drafter_->observe(results_);
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
  // Only now: until the round is over, the views look at the history it began with.
  for (std::size_t index = n_before; index < stream.tokens.size(); ++index) {
    stream.history.add_generated(stream.tokens[index]);
  }
}

}  // namespace outrider
