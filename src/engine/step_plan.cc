#include "engine/step_plan.h"

#include <algorithm>
#include <cmath>

namespace outrider {
namespace {

// Rounds that a prior counts for beside what a text has seen itself.
constexpr double kPriorRounds = 8;

// From a text's depth to a deeper one, where that is its best way on.
struct Deeper {
  std::size_t text = 0;
  int depth = 0;
  double tokens = 0;  // that it adds
  double rows = 0;

  // Tokens a row, and what stands first among equals.
  bool operator<(const Deeper& other) const {
    const double mine = tokens * other.rows;
    const double its = other.tokens * rows;
    return mine != its ? mine < its : text > other.text;
  }
};

class Planner {
 public:
  Planner(std::span<const PlannedText> texts, const PassTimes& passes,
          std::span<const PassTimes> levels, int n_prompt, std::vector<int>& depths)
      : texts_(texts), passes_(passes), levels_(levels), n_prompt_(n_prompt), depths_(depths) {
    deepest_.assign(levels.size(), 0);
    n_drafting_.assign(levels.size(), 0);
  }

  void plan() {
    depths_.assign(texts_.size(), 0);
    tokens_ = static_cast<double>(texts_.size());
    rows_ = tokens_;
    for (std::size_t i = 0; i < texts_.size(); ++i) {
      if (texts_[i].fixed) take_fixed(i);
    }
    best_ = depths_;
    double best_rate = rate();
    for (std::size_t i = 0; i < texts_.size(); ++i) offer(i);
    while (!offers_.empty()) {
      std::pop_heap(offers_.begin(), offers_.end());
      const Deeper deeper = offers_.back();
      offers_.pop_back();
      take(deeper);
      offer(deeper.text);
      if (const double now = rate(); now > best_rate) {
        best_rate = now;
        best_ = depths_;
      }
    }
    depths_ = best_;
  }

 private:
  void take_fixed(std::size_t i) {
    const PlannedText& text = texts_[i];
    Deeper all{.text = i, .depth = text.deepest};
    for (int depth = 1; depth <= text.deepest; ++depth) add(text, depth, all);
    take(all);
  }

  static void add(const PlannedText& text, int depth, Deeper& deeper) {
    const DraftPast::Depth more = text.past->at(depth, text.prior);
    deeper.tokens += more.accepted;
    deeper.rows += more.nodes;
  }

  // The depth from here that gives most tokens a row: what comes behind it gives fewer, so that
  // taking the best of all texts' first is the best for any number of rows.
  void offer(std::size_t i) {
    const PlannedText& text = texts_[i];
    if (text.fixed || depths_[i] >= text.deepest) return;
    Deeper best;
    Deeper deeper{.text = i};
    for (int depth = depths_[i] + 1; depth <= text.deepest; ++depth) {
      add(text, depth, deeper);
      deeper.depth = depth;
      if (best.depth == 0 || best < deeper) best = deeper;
    }
    offers_.push_back(best);
    std::push_heap(offers_.begin(), offers_.end());
  }

  void take(const Deeper& deeper) {
    const PlannedText& text = texts_[deeper.text];
    tokens_ += deeper.tokens;
    rows_ += deeper.rows;
    if (text.drafter >= 0 && deeper.depth > 0) {
      const auto drafter = static_cast<std::size_t>(text.drafter);
      if (depths_[deeper.text] == 0) ++n_drafting_[drafter];
      deepest_[drafter] = std::max(deepest_[drafter], deeper.depth);
    }
    depths_[deeper.text] = deeper.depth;
  }

  // Tokens per second. Drafted rows cost what they cost beside the prompts' rows.
  double rate() const {
    const auto n_texts = static_cast<int>(texts_.size());
    const auto n_rows = static_cast<int>(std::lround(rows_));
    double seconds = passes_.seconds(n_texts) + passes_.seconds(n_rows + n_prompt_) -
                     passes_.seconds(n_texts + n_prompt_);
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      seconds += deepest_[i] * levels_[i].seconds(n_drafting_[i]);
    }
    return seconds > 0 ? tokens_ / seconds : 0;
  }

  std::span<const PlannedText> texts_;
  const PassTimes& passes_;
  std::span<const PassTimes> levels_;
  int n_prompt_;
  std::vector<int>& depths_;
  std::vector<int> best_;
  std::vector<Deeper> offers_;   // a heap, the best one first
  std::vector<int> deepest_;     // of each drafter
  std::vector<int> n_drafting_;  // likewise, texts
  double tokens_ = 0;
  double rows_ = 0;
};

}  // namespace

void DraftPast::forget() {
  for (Counts& counts : counts_) {
    counts.rounds *= keeps_;
    counts.accepted *= keeps_;
    counts.nodes *= keeps_;
  }
}

void DraftPast::add(const DraftTree& tree, int limit, int accepted) {
  const int deepest = std::min(limit, kDeepest);
  for (int depth = 1; depth <= deepest; ++depth) {
    Counts& counts = counts_[static_cast<std::size_t>(depth - 1)];
    counts.rounds += 1;
    if (accepted >= depth) counts.accepted += 1;
  }
  for (int node = 1; node < tree.n_nodes(); ++node) {
    // A scratch node costs a row like any other; it comes with the first depth.
    const int depth = node <= tree.n_drafted() ? tree.node(node).depth : 1;
    if (depth <= deepest) counts_[static_cast<std::size_t>(depth - 1)].nodes += 1;
  }
}

DraftPast::Depth DraftPast::at(int depth, const DraftPast* prior) const {
  const Counts& own = counts(std::min(depth, kDeepest));
  Depth before{.accepted = 1, .nodes = 1};
  double weight = 1;
  if (prior != nullptr) {
    before = prior->at(depth, nullptr);
    weight = kPriorRounds;
  }
  const double total = own.rounds + weight;
  return {.accepted = (own.accepted + weight * before.accepted) / total,
          .nodes = (own.nodes + weight * before.nodes) / total};
}

void plan_drafts(std::span<const PlannedText> texts, const PassTimes& passes,
                 std::span<const PassTimes> levels, int n_prompt, std::vector<int>& depths) {
  Planner(texts, passes, levels, n_prompt, depths).plan();
}

}  // namespace outrider
