#include "engine/draft_planner.h"

#include <algorithm>
#include <cstddef>

namespace outrider {
namespace {

// Rounds that are remembered: of one text some twenty, which is a sentence or two; of all texts
// with a drafter some fifty.
constexpr double kTextKeeps = 0.95;
constexpr double kDrafterKeeps = 0.98;
// Rounds without a draft of a drafter before one text tries one: what it costs is then a percent or
// two of what the rounds do. Where it is accepted, another one follows at once.
constexpr int kBetweenTrials = 64;
constexpr int kTrialDepth = 2;

}  // namespace

DraftPast DraftPlanner::past_of_text() { return DraftPast(kTextKeeps); }

void DraftPlanner::measure(LanguageModel& target) { passes_ = measure_passes(target); }

// By address: a drafter that another has replaced at the same place begins with the past of that.
std::size_t DraftPlanner::index_of(const Drafter* drafter) {
  const auto at =
      std::find_if(drafters_.begin(), drafters_.end(),
                   [drafter](const DrafterPast& one) { return one.drafter == drafter; });
  if (at != drafters_.end()) return static_cast<std::size_t>(at - drafters_.begin());
  drafters_.push_back({.drafter = drafter, .past = DraftPast(kDrafterKeeps)});
  levels_.emplace_back();
  return drafters_.size() - 1;
}

bool DraftPlanner::pays(const Drafter* drafter) const {
  const auto at =
      std::find_if(drafters_.begin(), drafters_.end(),
                   [drafter](const DrafterPast& one) { return one.drafter == drafter; });
  return at == drafters_.end() || at->pays;
}

void DraftPlanner::plan(std::span<const Text> texts) {
  if (passes_.empty()) return;
  for (const Text& text : texts) {  // first: the list of drafters stays where it is from here on
    const Drafter* const drafter = text.share->stream->drafting.drafter;
    if (drafter != nullptr) index_of(drafter);
  }
  planned_.clear();
  drafting_.clear();
  int n_prompt = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const StreamShare& share = *texts[i].share;
    n_prompt += static_cast<int>(share.n_to_run);
    if (share.n_to_run > 0) continue;
    PlannedText one;
    if (const Drafter* const drafter = share.stream->drafting.drafter) {
      const std::size_t index = index_of(drafter);
      one.deepest = std::min(share.stream->drafting.shape->depth(), DraftPast::kDeepest);
      one.fixed = !texts[i].adaptive;
      one.drafter = static_cast<int>(index);
      one.past = texts[i].past;
      one.prior = &drafters_[index].past;
    }
    planned_.push_back(one);
    drafting_.push_back(i);
  }
  plan_drafts(planned_, passes_, levels_, n_prompt, depths_);
  for (std::size_t i = 0; i < planned_.size(); ++i) {
    if (planned_[i].past == nullptr || planned_[i].fixed) continue;
    const bool whole = depths_[i] == DraftPast::kDeepest;
    if (!whole) texts[drafting_[i]].share->draft_depth = depths_[i];
  }
  try_again(texts);
}

// Where no text drafts by a drafter any more, one does from time to time: the shortest, for which
// the drafter has least to catch up with.
void DraftPlanner::try_again(std::span<const Text> texts) {
  for (std::size_t drafter = 0; drafter < drafters_.size(); ++drafter) {
    DrafterPast& one = drafters_[drafter];
    one.is_trial = false;
    const Text* shortest = nullptr;
    bool any = false;
    bool drafts = false;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      if (planned_[i].drafter != static_cast<int>(drafter)) continue;
      const Text& text = texts[drafting_[i]];
      any = true;
      drafts = drafts || text.share->draft_depth > 0;
      if (shortest == nullptr ||
          text.share->stream->tokens.size() < shortest->share->stream->tokens.size()) {
        shortest = &text;
      }
    }
    if (!any) continue;
    one.pays = drafts;
    if (drafts) {
      one.until_trial = kBetweenTrials;
    } else if (one.until_trial > 0) {
      --one.until_trial;
    } else {
      one.is_trial = true;
      shortest->share->draft_depth = kTrialDepth;
    }
  }
}

void DraftPlanner::learn(std::span<const Text> texts, const Decoder& decoder,
                         const RoundTimes& times) {
  if (passes_.empty()) return;
  for (DrafterPast& one : drafters_) {
    one.deepest = 0;
    one.n_tries = 0;
    one.n_texts = 0;
    one.n_accepted = 0;
  }
  int n_rows = 0;
  bool has_prompts = false;
  for (const Text& text : texts) {
    const StreamShare& share = *text.share;
    if (share.n_to_run > 0) {
      has_prompts = true;
      continue;
    }
    const Stream& stream = *share.stream;
    n_rows += stream.tree.n_nodes();
    if (stream.drafting.drafter == nullptr) continue;
    const int limit = std::min(share.draft_depth, stream.drafting.shape->depth());
    if (limit == 0) continue;
    const auto accepted = static_cast<int>(stream.verdict.path.size());
    DrafterPast& of_drafter = drafters_[index_of(stream.drafting.drafter)];
    text.past->forget();
    text.past->add(stream.tree, limit, accepted);
    if (of_drafter.n_tries++ == 0) of_drafter.past.forget();
    of_drafter.n_accepted += accepted;
    of_drafter.past.add(stream.tree, limit, accepted);
    if (stream.tree.n_drafted() == 0) continue;
    ++of_drafter.n_texts;
    const int deepest = stream.tree.node(stream.tree.n_drafted()).depth;
    of_drafter.deepest = std::max(of_drafter.deepest, deepest);
  }
  // Rows of prompts cost less than others: they ask for no logits.
  if (!has_prompts) passes_.add(n_rows, times.forward);
  for (std::size_t i = 0; i < drafters_.size(); ++i) {
    DrafterPast& one = drafters_[i];
    if (one.is_trial) one.until_trial = one.n_accepted > 0 ? 0 : kBetweenTrials;
    if (one.deepest == 0) continue;
    levels_[i].add(one.n_texts, decoder.draft_seconds(one.drafter) / one.deepest);
  }
}

}  // namespace outrider
