// SPDX-License-Identifier: Apache-2.0
// Finds good settings by measuring: the fastest draft tree for a drafter on this machine, and the
// layers that a target may skip to draft for itself.
//
//   auto model = outrider::Model::load("stories260K");
//   outrider::SpeculationOptions drafter = {.drafter = "model:weak260K"};
//   outrider::TreeProfileOptions options;
//   options.texts.paths = {"stories.txt"};
//   const auto profile = outrider::measure_tree_profile(model, drafter, options);
//   outrider::write_tree_profile(profile, "profile.json");
//   drafter.tree = "sequoia:profile=profile.json";
//   outrider::Generator generator(model, drafter);
//
// These settings affect speed alone: every tree is verified exactly. Thread-safe, except that
// nothing else may run a model that is measured.
#ifndef OUTRIDER_TUNE_H_
#define OUTRIDER_TUNE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "outrider/generate.h"
#include "outrider/measure.h"
#include "outrider/model.h"
#include "outrider/sampling.h"

namespace outrider {

// Input of tree planning: acceptance rates by rank, and the costs of a round's parts.
struct TreeProfile {
  std::string target;   // what was measured, as information for users
  std::string drafter;  // as information for users
  double temperature = 0;
  // How the children of a node were proposed: a value of the key "siblings" of trees.
  std::string siblings = "without";
  // [k]: the probability that the child of rank k is accepted, given that its parent is. At least
  // one value; their sum is at most 1.
  std::vector<double> accept_by_rank;
  // The nodes that were counted.
  std::int64_t n_nodes = 0;
  // Seconds of a round's drafting and bookkeeping apart from its levels and the target's pass; and
  // of each level of the draft.
  double draft_seconds = 0;
  double level_seconds = 0;
  // A pass of the target over `rows` rows, ascending from 1. Costs between them are interpolated
  // linearly.
  struct Pass {
    int rows = 1;
    double seconds = 0;
  };
  std::vector<Pass> passes;
};

// The texts on which drafts are judged: beginnings that the target continues.
struct ContinuedTexts {
  std::vector<std::filesystem::path> paths = {};  // UTF-8 files and folders; at least one
  std::string separator = {};    // between the documents of a file; empty: a file is one
  int count = 1;                 // beginnings, spread over the texts
  int prompt_tokens = 32;        // of each beginning
  int max_tokens = 64;           // of each continuation
  SamplingParams sampling = {};  // of the continuations
};

struct TreeProfileOptions {
  ContinuedTexts texts = {.count = 40, .max_tokens = 64};  // max_tokens: at least 8
  int ranks = 8;                                           // children of a node that are tried
  int max_nodes = 63;  // of a planned draft; the target's passes are measured up to it
  int rounds = 3;      // of the measurement of passes
  std::string siblings = "without";
  MeasureProgress progress = {};
};

// Continues beginnings of the texts with drafts of `ranks` children of the root, and counts which
// are accepted. In turn with these, runs drafts of several levels to measure their cost. Then
// measures the target's passes. Of `speculation`, only the drafter and its options are used. Throws
// UsageError for options out of range, a context too short for them, and drafters that do not draft
// the trees asked for. Throws Error for texts that cannot be read or are fewer than asked for, and
// where nothing was drafted.
TreeProfile measure_tree_profile(const std::shared_ptr<const Model>& model,
                                 const SpeculationOptions& speculation,
                                 const TreeProfileOptions& options);

// Writes JSON, whole or not at all. Throws Error.
void write_tree_profile(const TreeProfile& profile, const std::filesystem::path& file);
// Throws Error for a file that cannot be read or is no profile.
TreeProfile read_tree_profile(const std::filesystem::path& file);

// The tree with the least predicted seconds per token.
struct PlannedDraft {
  std::vector<int> n_children;  // of each node, level by level; nodes left out at the end have none
  std::vector<int> level_sizes;  // nodes of each level below the root; empty: no draft pays
  int n_nodes = 0;               // the sum of level_sizes
  double tau = 1;                // expected tokens per pass of the target
  double seconds_per_token = 0;
  double plain_seconds_per_token = 0;  // without drafts

  double speedup() const { return plain_seconds_per_token / seconds_per_token; }
};

// Plans the best tree of at most `budget` nodes and `depth` levels, by the dynamic programme of
// Chen et al., "Sequoia" (2024). A budget of 0 means as many nodes as the profile's passes cover; a
// depth of 0, as many levels as nodes. Throws UsageError for a budget beyond the profile's passes,
// and for a profile without passes or acceptance rates.
PlannedDraft plan_tree(const TreeProfile& profile, int budget = 0, int depth = 0);

struct LayerSearchOptions {
  ContinuedTexts texts = {.count = 16, .max_tokens = 96};
  int trials = 128;        // sets of layers to try; all sets if there are no more
  int rounds = 3;          // of the measurement of passes
  std::uint64_t seed = 0;  // of the continuations and of the sets tried
  MeasureProgress progress = {};
};

// A target without some of its layers, drafting chains for the whole target.
struct SkippedLayers {
  std::vector<int> layers;  // left out, ascending, numbered from 0
  // The acceptance rate of its drafted tokens after the target's own text.
  double acceptance = 0;
  double cost = 0;     // of its one-row pass, in one-row passes of the target
  int length = 0;      // of the chain expected to be fastest; 0: no draft pays
  double speedup = 1;  // expected over plain decoding

  std::string drafter() const;  // "layerskip:skip=1+3"
};

// Tries sets of layers to leave out (the drafter "layerskip"). Returns them by expected speed-up,
// the largest first; among equals, by acceptance.
//
// The target continues beginnings of the texts once. At a sampled token x of it a draft is accepted
// with probability min(1, draft_prob(x) / target_prob(x)). The mean over x is the overlap of the
// two distributions, so one pass over the continuations judges a set. First every single layer is
// tried. Further sets are sampled near the best sets so far (Bergstra et al., "Algorithms for
// hyper-parameter optimization", 2011, section 4, with an independent probability for each layer).
// Zhang et al., "Draft & Verify" (2024) use Bayesian optimisation for the same search. The search
// depends on measured costs: if not all sets are tried, another run may try others.
//
// Throws UsageError for options out of range and models of a single layer, and Error for texts.
std::vector<SkippedLayers> search_layers(const std::shared_ptr<const Model>& model,
                                         const LayerSearchOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_TUNE_H_
