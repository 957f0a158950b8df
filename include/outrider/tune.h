// Finding good settings by measuring: the draft tree that pays most for a drafter on this machine,
// and the layers that a target drafts best without.
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
// What is tuned so decides speed alone: every tree is verified exactly.
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

// What a tree is planned from: how often the drafter's proposals stand, by rank, and what the parts
// of a round cost.
struct TreeProfile {
  std::string target;   // what was measured, for people to read
  std::string drafter;  // likewise
  double temperature = 0;
  // How the children of a node were proposed, as the key "siblings" of trees says it.
  std::string siblings = "without";
  // [k]: the probability that of a node's children the one of rank k is the one that stands, given
  // that the node does. At least one; their sum is at most 1.
  std::vector<double> accept_by_rank;
  // What they were counted on.
  std::int64_t n_nodes = 0;
  // A round with a draft beside its levels and the target's pass, and each level of the draft.
  double draft_seconds = 0;
  double level_seconds = 0;
  // A pass of the target over so many rows, ascending from 1. Between them, straight lines.
  struct Pass {
    int rows = 1;
    double seconds = 0;
  };
  std::vector<Pass> passes;
};

// What drafts are judged on: beginnings of texts, which the target continues.
struct ContinuedTexts {
  std::vector<std::filesystem::path> paths = {};  // UTF-8 files and folders; at least one
  std::string separator = {};    // between the documents of a file; empty: a file is one
  int count = 1;                 // of the beginnings, taken from all over
  int prompt_tokens = 32;        // of each beginning
  int max_tokens = 64;           // each is continued by
  SamplingParams sampling = {};  // of the continuations
};

struct TreeProfileOptions {
  ContinuedTexts texts = {.count = 40, .max_tokens = 64};  // max_tokens: at least 8
  int ranks = 8;                                           // children of a node that are tried
  int most_nodes = 63;  // of a planned draft: the target's passes are measured up to there
  int rounds = 3;       // of the passes' measurement
  std::string siblings = "without";
  MeasureProgress progress = {};
};

// Continues beginnings of the texts with drafts of `ranks` children of the root and counts which of
// them stand; in turn with these, drafts of several levels, for their cost; then times the target's
// passes. Of `speculation`, the drafter and its options count. Throws UsageError for options out of
// range, a context that is too short for them, and drafters that do not draft trees as told; Error
// for texts that cannot be read or are fewer than asked for, and where nothing was drafted.
TreeProfile measure_tree_profile(const std::shared_ptr<const Model>& model,
                                 const SpeculationOptions& speculation,
                                 const TreeProfileOptions& options);

// JSON, whole or not at all. Throws Error.
void write_tree_profile(const TreeProfile& profile, const std::filesystem::path& file);
// Throws Error for a file that cannot be read or is no profile.
TreeProfile read_tree_profile(const std::filesystem::path& file);

// The tree of least seconds a token that a profile promises.
struct PlannedDraft {
  std::vector<int> n_children;  // of each node, level by level; nodes left out at the end have none
  std::vector<int> level_sizes;  // nodes of each level below the root; empty: no draft pays
  int n_nodes = 0;               // all of these
  double tau = 1;                // expected tokens a pass of the target
  double seconds_per_token = 0;
  double plain_seconds_per_token = 0;  // without drafts

  double speedup() const { return plain_seconds_per_token / seconds_per_token; }
};

// The best tree of at most `budget` nodes and `depth` levels, by the dynamic programme of Chen et
// al., "Sequoia" (2024). 0: as many nodes as the profile's passes go up to, as many levels as
// nodes. Throws UsageError for a budget beyond the profile's passes, and a profile without passes
// or shares.
PlannedDraft plan_tree(const TreeProfile& profile, int budget = 0, int depth = 0);

struct LayerSearchOptions {
  ContinuedTexts texts = {.count = 16, .max_tokens = 96};
  int trials = 128;        // sets of layers that are tried; all, where there are no more
  int rounds = 3;          // of the passes' measurement
  std::uint64_t seed = 0;  // of the continuations and of what is tried
  MeasureProgress progress = {};
};

// A target without some of its layers, drafting chains for the whole.
struct SkippedLayers {
  std::vector<int> layers;  // left out, ascending, numbered from 0
  // How often the token that it drafts stands, behind text of the target's own.
  double acceptance = 0;
  double cost = 0;     // of its pass over one row, in such passes of the target
  int length = 0;      // of the chain expected to be fastest; 0: no draft pays
  double speedup = 1;  // expected over plain decoding

  std::string drafter() const;  // "layerskip:skip=1+3"
};

// Tries sets of layers to leave out (the drafter "layerskip") and returns them, the largest
// expected speed-up first, of equals the higher acceptance. The target continues beginnings of the
// texts once. On a sampled token x of it the draft stands with probability
// min(1, draft_prob(x) / target_prob(x)), whose mean over x is the overlap of the two laws: so one
// pass over the continuations judges a set. After every single layer, the sets that are tried come
// from where good ones have been found (Bergstra et al., "Algorithms for hyper-parameter
// optimization", 2011, section 4, with an independent share a layer), as Zhang et al., "Draft &
// Verify" (2024) search by Bayesian optimisation. What is good depends on measured costs, too:
// where not all sets are tried, another run may try others.
// Throws UsageError for options out of range and models of a single layer, Error for texts.
std::vector<SkippedLayers> search_layers(const std::shared_ptr<const Model>& model,
                                         const LayerSearchOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_TUNE_H_
