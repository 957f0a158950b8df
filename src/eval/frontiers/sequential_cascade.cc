// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/sequential_cascade.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "base/elementary.h"
#include "base/spec.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "sampling/penalised_row.h"
#include "speculate/node_views.h"
#include "speculate/rules/make_rule.h"

namespace outrider::eval {
namespace {

constexpr const char* kOperation = "read cascade";

struct CascadeSpec {
  std::string kind;
  std::string rule;  // a spec
  double alpha = 0;  // sequence
  bool log_loss = false;
};

// "token:chow,alpha=0.3" -> the cascade "token" and the rule "chow:alpha=0.3".
CascadeSpec parse(const std::string& text) {
  const Spec spec = Spec::parse("cascade", text);
  spec.require_name({"token", "sequence", "oracle"});
  if (spec.value().empty()) {
    throw UsageError(kOperation, text, "a rule, as in token:chow,alpha=0.3", "none");
  }
  // The rule that decides before the target runs cannot depend on the target.
  if (spec.name() != "oracle" && spec.value() != "chow") {
    throw UsageError(kOperation, text,
                     fmt::format("chow, which looks at the drafter alone, in a {} cascade "
                                 "(others: oracle:{},...)",
                                 spec.name(), spec.value()),
                     spec.value());
  }
  CascadeSpec cascade{.kind = spec.name(), .rule = text.substr(text.find(':') + 1)};
  const std::size_t comma = cascade.rule.find(',');
  if (comma != std::string::npos) cascade.rule[comma] = ':';
  (void)make_rule(cascade.rule);
  if (spec.name() == "sequence") {
    spec.require_keys({"alpha", "loss"});
    constexpr double kAny = std::numeric_limits<double>::max();
    cascade.alpha = spec.number("alpha", -kAny, kAny).value_or(0);
    cascade.log_loss = spec.text("loss") == "log";
  }
  return cascade;
}

}  // namespace

void check_cascade(const std::string& spec) { (void)parse(spec); }

// A model and one text: the tokens that it has run, and the number of passes.
class SequentialCascade::Reader {
 public:
  // Runs the encoder, if any, and the prompt without its last token. The job's prompts must outlive
  // this. shared_vocabulary: ids that both models know.
  Reader(LanguageModel& model, int shared_vocabulary, const SequentialJob& job)
      : model_(&model),
        shared_(shared_vocabulary),
        encoder_prompt_(job.encoder_prompt),
        sequence_(opened(static_cast<int>(job.prompt.size()))) {
    model.encode(*sequence_);
    const auto before = job.prompt.first(job.prompt.size() - 1);
    if (!can_run(before)) return;
    prefill(model, *sequence_, before, output_);
  }

  // The logits after `tokens`, a longer prefix of the text each time; empty if the model cannot run
  // them. Runs the new tokens in one pass.
  LogitRow logits(std::span<const TokenId> tokens) {
    const auto n_tokens = static_cast<int>(tokens.size());
    if (n_tokens > model_->context_of(*sequence_)) {
      sequence_ = opened(n_tokens);
    }
    const auto rest = tokens.subspan(static_cast<std::size_t>(sequence_->n_kept()));
    if (!can_run(rest)) return {};
    const TokenBlock block{.sequence = sequence_.get(), .tokens = rest, .parents = {}};
    model_->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                    output_);
    path_.resize(rest.size());
    for (std::size_t i = 0; i < rest.size(); ++i) path_[i] = static_cast<int>(i);
    sequence_->keep(path_);
    ++n_passes_;
    return output_.logits.row(0);
  }

  std::int64_t n_passes() const { return n_passes_; }

 private:
  std::unique_ptr<Sequence> opened(int n_tokens) const {
    return model_->open({.encoder_tokens = encoder_prompt_, .n_tokens = n_tokens});
  }
  bool can_run(std::span<const TokenId> tokens) const {
    const auto n_after = static_cast<std::size_t>(sequence_->n_kept()) + tokens.size();
    return n_after <= static_cast<std::size_t>(model_->config().context_length) &&
           std::all_of(tokens.begin(), tokens.end(),
                       [this](TokenId token) { return token >= 0 && token < shared_; });
  }

  LanguageModel* model_;
  int shared_;
  std::span<const TokenId> encoder_prompt_;
  std::unique_ptr<Sequence> sequence_;
  ForwardOutput output_;
  std::vector<int> path_;
  std::int64_t n_passes_ = 0;
};

// The views for the next token of a text. A model runs only when a rule first reads its
// distribution.
class SequentialCascade::Views final : public NodeViews {
 public:
  Views(Reader& target, Reader& drafter, std::size_t shared, const Transform& transform,
        const TokenHistory& history, std::span<const TokenId> tokens, double rule_kl)
      : target_(target),
        drafter_(drafter),
        shared_(shared),
        transform_(transform),
        history_(history),
        tokens_(tokens),
        rule_kl_(rule_kl) {}

  const Distribution& target(int) override { return of_target().prob; }
  const Distribution& raw_target(int) override { return of_target().raw; }
  const Distribution* draft(int) override {
    const Distributions& dists = of_drafter();
    return dists.known ? &dists.prob : nullptr;
  }
  const Distribution* raw_draft(int) override {
    const Distributions& dists = of_drafter();
    return dists.known ? &dists.raw : nullptr;
  }
  bool is_leaf(int) const override { return false; }
  int parent(int) const override { return -1; }
  double rule_kl_before_root() const override { return rule_kl_; }
  double& note(int) override { return note_; }
  // None of the rules used here reads marks (make_rule).
  bool is_open(int, TokenId, TokenId) override { return false; }

 private:
  struct Distributions {
    bool known = false;
    Distribution prob, raw;
  };
  const Distributions& of_target() {
    if (!target_dists_) target_dists_ = read(target_, std::numeric_limits<std::size_t>::max());
    return *target_dists_;
  }
  const Distributions& of_drafter() {
    if (!drafter_dists_) drafter_dists_ = read(drafter_, shared_);
    return *drafter_dists_;
  }
  Distributions read(Reader& reader, std::size_t n_ids) {
    Distributions dists;
    const LogitRow logits = reader.logits(tokens_);
    if (logits.empty()) return dists;
    std::vector<TokenLogit> replaced;
    // The drafter never emits ids beyond the shared vocabulary.
    const PenalisedRow penalised(transform_, logits.first(n_ids), history_, {}, replaced);
    transform_.raw_distribution(penalised.row().values(), dists.raw);
    transform_.distribution(penalised.row(), dists.prob);
    dists.known = true;
    return dists;
  }

  Reader& target_;
  Reader& drafter_;
  std::size_t shared_;
  const Transform& transform_;
  const TokenHistory& history_;
  std::span<const TokenId> tokens_;
  double rule_kl_;
  double note_ = std::numeric_limits<double>::quiet_NaN();
  std::optional<Distributions> target_dists_;
  std::optional<Distributions> drafter_dists_;
};

SequentialCascade::SequentialCascade(LanguageModel& target, LanguageModel& drafter,
                                     const std::string& spec)
    : target_(&target), drafter_(&drafter) {
  const CascadeSpec cascade = parse(spec);
  rule_ = make_rule(cascade.rule);
  whole_ = cascade.kind == "sequence";
  knows_cost_ = cascade.kind == "oracle";
  alpha_ = cascade.alpha;
  log_loss_ = cascade.log_loss;
}

SequentialCascade::~SequentialCascade() = default;

bool SequentialCascade::greedy() const { return rule_->needs().greedy; }

namespace {

// The text so far, and whether it may continue.
struct Writing {
  Writing(const SequentialJob& job, int context_length)
      : tokens(job.prompt.begin(), job.prompt.end()),
        max_tokens(std::min(job.prompt.size() + static_cast<std::size_t>(job.max_tokens),
                            static_cast<std::size_t>(context_length))) {
    history.add_prompt(job.prompt);
    if (job.ending) ends = job.ending();
  }

  bool goes_on() const { return !ended && tokens.size() < max_tokens; }
  void add(TokenId token) {
    tokens.push_back(token);
    history.add_generated(token);
    ended = ends && ends(token);
  }
  std::vector<TokenId> generated(const SequentialJob& job) const {
    return {tokens.begin() + static_cast<std::ptrdiff_t>(job.prompt.size()), tokens.end()};
  }
  Draw draw(Purpose purpose) const {
    return {.position = static_cast<std::int64_t>(tokens.size()), .node = 0, .purpose = purpose};
  }

  std::vector<TokenId> tokens;
  TokenHistory history;
  std::size_t max_tokens;
  std::function<bool(TokenId)> ends;
  bool ended = false;
};

}  // namespace

SequentialText SequentialCascade::generate(const SequentialJob& job) {
  return whole_ ? write_in_turn(job) : write_together(job);
}

SequentialText SequentialCascade::write_together(const SequentialJob& job) {
  const int vocabulary = target_->config().vocabulary_size;
  const int shared = std::min(vocabulary, drafter_->config().vocabulary_size);
  Reader target(*target_, vocabulary, job);
  Reader drafter(*drafter_, shared, job);
  Writing writing(job, target_->config().context_length);
  SequentialText text;
  Distribution dist;
  while (writing.goes_on()) {
    if (job.cancelled && job.cancelled()) {
      text.cancelled = true;
      break;
    }
    Views views(target, drafter, static_cast<std::size_t>(shared), *job.transform, writing.history,
                writing.tokens, text.cost.kl);
    rule_->rule_prob(views, 0, dist);
    if (knows_cost_) {
      const RuleCost cost = cost_of(*rule_, views, 0, dist);
      text.cost.kl += cost.kl;
      text.cost.total_variation += cost.total_variation;
      text.cost.deferral += cost.deferral;
    } else {
      text.cost.deferral += rule_->deferral(views, 0, dist);
    }
    writing.add(job.chance->categorical(dist, writing.draw(Purpose::token)));
  }
  text.ids = writing.generated(job);
  text.target_passes = target.n_passes();
  text.drafter_passes = drafter.n_passes();
  return text;
}

SequentialText SequentialCascade::write_in_turn(const SequentialJob& job) {
  const int vocabulary = target_->config().vocabulary_size;
  const int shared = std::min(vocabulary, drafter_->config().vocabulary_size);
  SequentialText text;
  const auto cancelled = [&] { return text.cancelled = job.cancelled && job.cancelled(); };
  Reader drafter(*drafter_, shared, job);
  Writing drafted(job, target_->config().context_length);
  double doubt = 0;
  bool given_up = false;
  Distribution dist;
  Distribution raw;
  std::vector<TokenLogit> replaced;
  // Both models write in the same way; the drafter's draws have separate keys.
  const auto write = [&](Reader& reader, std::size_t n_ids, Writing& writing, Purpose purpose) {
    const LogitRow logits = reader.logits(writing.tokens);
    if (logits.empty()) return false;
    const PenalisedRow penalised(*job.transform, logits.first(n_ids), writing.history, {},
                                 replaced);
    job.transform->raw_distribution(penalised.row().values(), raw);
    job.transform->distribution(penalised.row(), dist);
    writing.add(job.chance->categorical(dist, writing.draw(purpose)));
    return true;
  };
  while (drafted.goes_on() && !given_up && !cancelled()) {
    given_up = !write(drafter, static_cast<std::size_t>(shared), drafted, Purpose::draft);
    if (!given_up) doubt -= portable_log(raw.prob(drafted.tokens.back()));
  }
  text.drafter_passes = drafter.n_passes();
  text.ids = drafted.generated(job);
  if (text.cancelled) return text;
  if (!text.ids.empty()) doubt /= static_cast<double>(text.ids.size());
  const bool defers = given_up || (log_loss_ ? doubt > alpha_ : portable_exp(-doubt) < 1 - alpha_);
  if (!defers) return text;

  using Clock = std::chrono::steady_clock;
  const Clock::time_point started = Clock::now();
  Reader target(*target_, vocabulary, job);
  text.second_prompt_seconds = std::chrono::duration<double>(Clock::now() - started).count();
  Writing written(job, target_->config().context_length);
  while (written.goes_on() && !cancelled()) {
    (void)write(target, static_cast<std::size_t>(vocabulary), written, Purpose::token);
  }
  text.target_passes = target.n_passes();
  text.ids = written.generated(job);
  text.cost.deferral = static_cast<double>(text.ids.size());
  return text;
}

}  // namespace outrider::eval
