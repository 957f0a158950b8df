// How deep each text drafts in the next pass: as deep as pays by what passes cost and by what was
// accepted lately, down to not at all.
#ifndef OUTRIDER_ENGINE_STEP_PLAN_H_
#define OUTRIDER_ENGINE_STEP_PLAN_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/draft_past.h"
#include "engine/pass_times.h"

namespace outrider {

// A text that decodes in the next pass.
struct PlannedText {
  int deepest = 0;     // its draft at most; 0: it drafts nothing
  bool fixed = false;  // it drafts so deep, whatever that costs
  // Its draft ends by itself where it does not pay (paying_stop.h): all of it, or none.
  bool ends_itself = false;
  int drafter = -1;                  // which of the plan's drafters
  double further_level = 1;          // DrafterTraits::further_level, of that one
  const DraftPast* past = nullptr;   // of this text; null for one that drafts nothing
  const DraftPast* prior = nullptr;  // of all texts with its drafter
  // What the drafter has to catch up with before, in seconds, and in how many tokens of the text
  // that is to be won back.
  double catch_up_seconds = 0;
  double horizon = 0;
};

// The plan by which tokens per second are the most: (tokens that the texts are expected to get) /
// (the pass and what the drafters take). A function of what plan() is given; the lists are kept
// from plan to plan. Not thread-safe.
class StepPlanner {
 public:
  // levels: of each drafter, what a level of drafts takes by the number of texts, at passes.scale()
  // 1. n_prompt: rows of prompts in the same pass, whose own cost decides nothing.
  void plan(std::span<const PlannedText> texts, const PassTimes& passes,
            std::span<const PassTimes* const> levels, int n_prompt);

  // Tokens a second over the text's horizon, where its drafter catches up before and the text is
  // by itself. A plan of that text.
  double rate_to_its_end(const PlannedText& text, const PassTimes& passes,
                         std::span<const PassTimes* const> levels);

  // How deep each text is to draft.
  const std::vector<int>& depths() const { return best_; }
  // That are expected of all texts together.
  double tokens_per_second() const { return best_rate_; }
  // By how much the best plan in which an adaptive text drafts is faster than the one in which none
  // does; 0: there is none to draft.
  double gain() const { return gain_; }

 private:
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
  void look_ahead();
  const DraftPast::Depth& at(std::size_t text, int depth) const {
    return outlook_[first_[text] + static_cast<std::size_t>(depth - 1)];
  }
  void take_fixed(std::size_t text);
  void add(int depth, Deeper& deeper) const;
  void offer(std::size_t text);
  bool wins_back(const Deeper& deeper);
  void take(const Deeper& deeper);
  double level_seconds(std::size_t drafter, double n_texts) const;
  double rate() const;
  double pass_seconds(double n_rows) const;

  // What plan() was given, while it runs.
  std::span<const PlannedText> texts_;
  const PassTimes* passes_ = nullptr;
  std::span<const PassTimes* const> levels_;
  int n_prompt_ = 0;

  std::vector<int> best_;
  double best_rate_ = 0;
  double gain_ = 0;
  std::vector<std::size_t> first_;         // of each text, in outlook_
  std::vector<DraftPast::Depth> outlook_;  // of depths 1 on
  std::vector<int> depths_;                // as far as texts have been taken
  std::vector<Deeper> offers_;             // a heap, the best one first
  std::vector<double> n_drafting_;  // (drafters, depths): texts that are expected to draft so deep
  double tokens_ = 0;
  double rows_ = 0;
  double level_seconds_ = 0;   // of all levels
  double prompt_seconds_ = 0;  // that the rows of prompts add to a pass
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_STEP_PLAN_H_
