// SPDX-License-Identifier: Apache-2.0
// Plans how deep each text drafts in the next pass, from the costs of passes and recent acceptance:
// as deep as is expected to save time, possibly not at all.
#ifndef OUTRIDER_ENGINE_DRAFTING_STEP_PLAN_H_
#define OUTRIDER_ENGINE_DRAFTING_STEP_PLAN_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/drafting/draft_past.h"
#include "engine/drafting/pass_times.h"

namespace outrider {

// A text that decodes in the next pass.
struct PlannedText {
  int deepest = 0;     // limit of its draft; 0: it drafts nothing
  bool fixed = false;  // it drafts to that limit, whatever the cost
  // Its stop rule ends the draft where it does not pay (paying_stop.h), so the plan takes all of
  // it, or none.
  bool ends_itself = false;
  int drafter = -1;                  // index into the plan's drafters
  double further_level = 1;          // DrafterTraits::further_level of that drafter
  const DraftPast* past = nullptr;   // of this text; null if it drafts nothing
  const DraftPast* prior = nullptr;  // of all texts with its drafter
  // Seconds that the drafter first needs to catch up, and the tokens of the text within which that
  // must be won back.
  double catch_up_seconds = 0;
  double horizon = 0;
};

// Finds the plan with the most tokens per second: (expected tokens of all texts) / (time of the
// pass and the drafters). The plan is a function of plan()'s arguments; storage is reused. Not
// thread-safe.
class StepPlanner {
 public:
  // levels: for each drafter, the time of one level of drafts by the number of texts, at
  // passes.scale() 1. n_prompt: rows of prompts in the same pass; their own cost does not influence
  // the plan.
  void plan(std::span<const PlannedText> texts, const PassTimes& passes,
            std::span<const PassTimes* const> levels, int n_prompt);

  // Tokens per second over the horizon of this text alone, including its drafter's catching up.
  // Plans this text as plan() does.
  double rate_to_its_end(const PlannedText& text, const PassTimes& passes,
                         std::span<const PassTimes* const> levels);

  // The depth of each text's draft.
  const std::vector<int>& depths() const { return best_; }
  // Expected for all texts together.
  double tokens_per_second() const { return best_rate_; }
  // How much faster the best plan with a drafting adaptive text is than the best without; 0: no
  // text can draft.
  double gain() const { return gain_; }

 private:
  // A step from a text's present depth to its best greater depth.
  struct Deeper {
    std::size_t text = 0;
    int depth = 0;
    double tokens = 0;  // that it adds
    double rows = 0;

    // Compares tokens per row; among equals the first text wins.
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

  // The arguments of plan(), while it runs.
  std::span<const PlannedText> texts_;
  const PassTimes* passes_ = nullptr;
  std::span<const PassTimes* const> levels_;
  int n_prompt_ = 0;

  std::vector<int> best_;
  double best_rate_ = 0;
  double gain_ = 0;
  std::vector<std::size_t> first_;         // for each text, its start in outlook_
  std::vector<DraftPast::Depth> outlook_;  // of depths 1 on
  std::vector<int> depths_;                // as planned so far
  std::vector<Deeper> offers_;             // a heap, the best one first
  std::vector<double> n_drafting_;         // (drafters, depths): expected texts that draft so deep
  double tokens_ = 0;
  double rows_ = 0;
  double level_seconds_ = 0;   // of all levels
  double prompt_seconds_ = 0;  // added to a pass by the prompt rows
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_DRAFTING_STEP_PLAN_H_
