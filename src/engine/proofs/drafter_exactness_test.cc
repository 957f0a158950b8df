// SPDX-License-Identifier: Apache-2.0
// The contract suite, first part: for every drafter, tree, rule and verification, the output
// follows the rule, by enumeration of every random decision. The findings for a drafter are its
// section of tests/golden/coverage.txt. The test compares it; with OUTRIDER_WRITE_COVERAGE set, it
// writes it and docs/coverage.md, which is made from that file (coverage_page_test.cc compares).
// Then drafters with one fault each, which the same enumeration must notice.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "engine/speculation.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/tune.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "speculate/rules/relaxed.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/nightly.h"
#include "tests/support/proofs/coverage_files.h"
#include "tests/support/proofs/coverage_findings.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_proof.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::DrafterCase;
using test::kCaught;
using test::kDrafterCases;
using test::kExact;
using test::prove;
using test::Proven;
using test::World;

World world_of(const DrafterCase& drafter, std::uint32_t seed) {
  return drafter.reads_target ? test::stored_world(seed) : test::table_world(seed);
}

// --- What is combined ------------------------------------------------------------------------

// One tree of every kind, small enough to enumerate all its draws.
struct Tree {
  const char* kind;
  std::string spec;  // empty: the drafter's default
};

std::vector<Tree> trees() {
  static const test::TemporaryDirectory directory;
  const fs::path ranks = directory.path() / "ranks.json";
  std::ofstream(ranks) << "[[0], [1], [0, 0]]";
  // If wider passes cost nothing, three nodes become two children and one after the first. This
  // tree alone draws with replacement.
  const fs::path profile = directory.path() / "profile.json";
  TreeProfile flat;
  flat.siblings = "with";
  flat.accept_by_rank = {0.5, 0.3};
  flat.passes = {{.rows = 1, .seconds = 1}, {.rows = 4, .seconds = 1}};
  EXPECT_THAT(plan_tree(flat).n_children, ::testing::ElementsAre(2, 1));
  write_tree_profile(flat, profile);
  return {{"own", ""},
          {"chain", "chain:length=2"},
          {"widths", "widths:2,1"},
          {"static", "static:file=" + ranks.string()},
          {"dynamic", "dynamic:total=4,depth=3,topk=2"},
          {"best", "best:nodes=4,depth=3"},
          {"sequoia", "sequoia:profile=" + profile.string()}};
}

// The first places of a fixed tree.
class FirstPlaces final : public TreeShape {
 public:
  FirstPlaces(std::shared_ptr<const TreeShape> shape, int n_nodes)
      : shape_(std::move(shape)), n_nodes_(n_nodes) {}
  int depth() const override { return shape_->depth(); }
  int n_nodes() const override { return n_nodes_; }
  bool is_chain() const override { return shape_->is_chain(); }
  Siblings siblings() const override { return shape_->siblings(); }
  Children children(const GrowingNode& node, int n_nodes) const override {
    return shape_->children(node, n_nodes);
  }
  void choose_frontier(std::span<const GrowingNode> nodes, int first, int n_nodes,
                       std::vector<int>& frontier) const override {
    shape_->choose_frontier(nodes, first, n_nodes, frontier);
  }
  bool choose_kept(std::span<const GrowingNode> nodes, int n_nodes,
                   std::vector<int>& kept) const override {
    return shape_->choose_kept(nodes, n_nodes, kept);
  }

 private:
  std::shared_ptr<const TreeShape> shape_;
  int n_nodes_;
};

// The drafter's default shape; but of a large fixed tree, just the first five places. For EAGLE-1's
// tree these are four siblings and a child.
std::shared_ptr<const TreeShape> own_shape(const DrafterPlan& plan) {
  constexpr int kMaxPlaces = 5;
  const auto* fixed = dynamic_cast<const FixedShape*>(plan.shape.get());
  if (fixed == nullptr || fixed->is_chain() || fixed->n_nodes() <= kMaxPlaces) return plan.shape;
  return std::make_shared<FirstPlaces>(plan.shape, kMaxPlaces);
}

constexpr const char* kVerifications[] = {"exact", "block", "traversal", "coupled"};

// Every rule, with parameters at which it has an effect.
std::string spec_of(std::string_view rule) {
  static const test::TemporaryDirectory directory;
  static const fs::path router = directory.path() / "router.json";
  if (rule == "router") {
    std::ofstream(router) << R"({"format": "outrider-router", "version": 1, "bias": 0.3, "weights":
               {"draft_max": -2.0, "target_entropy": -0.7, "total_variation": 3.5}})";
    return "router:path=" + router.string();
  }
  constexpr std::pair<std::string_view, const char*> kParameters[] = {
      {"chow", "alpha=0.4"},
      {"diff", "alpha=0.1"},
      {"opt", "alpha=0.3"},
      {"token-v1", "alpha=0.3"},
      {"token-v2", "alpha=0.2"},
      {"token-v3", "alpha=0.5"},
      {"lossy", "alpha=0.3"},
      {"lossy-greedy", "alpha=0.2,bonus=rule"},
      {"lenience", "eps=0.6"},
      {"budget", "kl=0.1,total=0.15"},
      {"bild-sampled", "alpha=0.9"},
      {"relaxed", "top=2,delta=0.4,bonus=rule"},
      {"fly", "window=1"}};
  for (const auto& [name, parameters] : kParameters) {
    if (name == rule) return fmt::format("{}:{}", name, parameters);
  }
  return std::string(rule);
}

// --- One combination -------------------------------------------------------------------------

constexpr std::uint32_t kSeeds = 4;

// The worlds in which a cell is enumerated: by day one, different from cell to cell; all of them in
// a nightly run.
std::vector<std::uint32_t> seeds_of(std::size_t cell) {
  if (!test::nightly()) return {static_cast<std::uint32_t>(cell % kSeeds) + 1};
  std::vector<std::uint32_t> seeds(kSeeds);
  std::iota(seeds.begin(), seeds.end(), 1U);
  return seeds;
}

// The fault found; empty if none.
std::string fault_of(const Proven& proven, bool prefix_determined) {
  if (!(std::abs(proven.weight - 1) < kExact)) return fmt::format("weight {}", proven.weight);
  if (!proven.violation.empty()) return "expected " + proven.violation;
  if (!(proven.error < kExact)) return fmt::format("a distribution off by {}", proven.error);
  if (prefix_determined && !proven.consistent) return "two distributions for one prefix";
  return {};
}

// Two tokens of the prompt as marks. The opening one is the prompt's last, so the output begins
// between the marks and often ends after them.
ThinkingMarks marks_of(const World& world) {
  const TokenId open = world.prompt.back();
  const auto close = std::find_if(world.prompt.rbegin(), world.prompt.rend(),
                                  [open](TokenId token) { return token != open; });
  return {.open = open, .close = close == world.prompt.rend() ? kNoToken : *close};
}

// The rule that an acceptance follows; null if none.
std::shared_ptr<const Rule> rule_of(std::string_view name, const std::string& spec,
                                    const ThinkingMarks& marks) {
  if (name == "typical" || name == "bild" || name == "fly") return nullptr;
  if (name == "relaxed") return std::make_shared<RelaxedRule>(2, 0.4, marks);  // as in spec_of
  return make_rule(spec);
}

std::string test_cell(const DrafterCase& drafter_case, const Tree& tree, const std::string& verify,
                      std::string_view rule_name, std::span<const std::uint32_t> seeds) {
  const std::string spec = spec_of(rule_name);
  const DrafterPlan plan = test::plan_of(drafter_case);
  std::int64_t n_drafted = 0;
  for (const std::uint32_t seed : seeds) {
    World world = world_of(drafter_case, seed);
    const ThinkingMarks marks = marks_of(world);
    const Verification verification =
        make_verification(spec, verify, [&marks](std::string_view spelling) {
          return std::optional<TokenId>(spelling == "<think>" ? marks.open : marks.close);
        });
    const auto rule = rule_of(rule_name, spec, marks);
    const bool needs_greedy = verification.acceptance->needs().greedy;
    const bool looks_at_draft = verification.acceptance->needs().draft_prob;
    const ConfidenceStop stop(verification.draft_until);
    for (const SamplingParams& sampling : world.few_outcomes) {
      if (needs_greedy && sampling.temperature > 0) continue;
      const auto drafter = plan.make(world.materials);
      const bool prefix_determined = drafter->traits().prefix_determined;
      const Proven proven =
          prove({.world = &world,
                 .drafter = drafter.get(),
                 .acceptance = verification.acceptance.get(),
                 .rule = rule.get(),
                 .shape = tree.spec.empty() ? own_shape(plan) : make_tree_shape(tree.spec),
                 .stop = verification.draft_until > 0 ? &stop : nullptr,
                 .sampling = sampling,
                 .n_tokens = 3,
                 .first_round_only = looks_at_draft && !prefix_determined,
                 .marks = marks});
      const std::string fault = fault_of(proven, prefix_determined);
      if (!fault.empty()) {
        return fmt::format("{}, seed {}, temperature {}", fault, seed, sampling.temperature);
      }
      n_drafted += proven.n_drafted;
    }
  }
  return n_drafted == 0 ? "nothing drafted" : "";
}

// --- All of a drafter's ----------------------------------------------------------------------

// Removes what differs between machines from a message.
std::string with_public_name(std::string message, const Tree& tree) {
  for (const auto& [kind, spec] :
       {std::pair{"static", "static:file=F"}, {"sequoia", "sequoia:profile=F"}}) {
    const std::size_t at =
        tree.kind == std::string_view(kind) ? message.find(tree.spec) : std::string::npos;
    if (at != std::string::npos) message.replace(at, tree.spec.size(), spec);
  }
  return message;
}

test::DrafterFindings findings_of(const DrafterCase& drafter_case) {
  test::DrafterFindings found{.name = drafter_case.name, .spec = drafter_case.spec};
  std::size_t cell = 0;
  for (const Tree& tree : trees()) {
    for (const char* verify : kVerifications) {
      for (const std::string_view rule : rule_names()) {
        test::Finding& finding = found.findings.emplace_back();
        finding.tree = tree.kind;
        finding.verify = verify;
        finding.rule = rule;
        try {
          SpeculationOptions options = test::speculation_of(drafter_case);
          options.rule = spec_of(rule);
          options.tree = tree.spec;
          options.verify = verify;
          check_speculation(options);
        } catch (const UsageError& error) {
          finding.result = with_public_name(error.what(), tree);
          continue;
        }
        const std::string fault = test_cell(drafter_case, tree, verify, rule, seeds_of(cell++));
        EXPECT_EQ(fault, "") << drafter_case.name << ", " << finding.combination();
        finding.result = fault.empty() ? test::kPassed : "FAIL";
      }
    }
  }
  return found;
}

class Coverage : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(Coverage, EveryCombinationIsExactOrRefusedAsTheGoldenFileSays) {
  const DrafterCase& drafter_case = GetParam();
  const std::string section = test::write_findings(findings_of(drafter_case));
  if (test::writing_coverage()) {
    test::write_coverage(drafter_case.name, section);
    return;
  }
  EXPECT_EQ(test::section_of(test::committed_findings(), drafter_case.name), section)
      << test::kWriteCoverage;
}

INSTANTIATE_TEST_SUITE_P(, Coverage, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CoverageOf, EveryRegisteredDrafterIsUnderTheSuite) {
  for (const DrafterKind& kind : drafter_kinds()) {
    const std::string& name = kind.description.name;
    if (name == "grammar") continue;  // grammar_exactness_test.cc
    EXPECT_TRUE(std::any_of(std::begin(kDrafterCases), std::end(kDrafterCases),
                            [&](const DrafterCase& drafter_case) {
                              const std::string_view spec = drafter_case.spec;
                              return spec.substr(0, spec.find(':')) == name;
                            }))
        << name;
  }
}

// --- Depth -----------------------------------------------------------------------------------

// Drafts three tokens deep, compared with the rule's own process.
class DeepDrafts : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DeepDrafts, AreExact) {
  const DrafterCase& drafter_case = GetParam();
  const DrafterPlan plan = test::plan_of(drafter_case);
  for (const std::string tree : {"", "chain:length=3", "widths:2,1,1", "widths:2,1,1,siblings=with",
                                 "dynamic:total=6,depth=3,topk=3", "best:nodes=7,depth=3"}) {
    const auto shape = tree.empty() ? own_shape(plan) : make_tree_shape(tree);
    for (const std::string verify : {"exact", "block", "traversal", "coupled"}) {
      if (verify == "block" && !shape->is_chain()) continue;
      const Verification verification = make_verification("exact", verify);
      const ExactRule rule;
      World world = world_of(drafter_case, 7);
      for (const SamplingParams& sampling : world.few_outcomes) {
        const auto drafter = plan.make(world.materials);
        const Proven proven = prove({.world = &world,
                                     .drafter = drafter.get(),
                                     .acceptance = verification.acceptance.get(),
                                     .rule = &rule,
                                     .shape = shape,
                                     .sampling = sampling,
                                     .n_tokens = 4,
                                     .first_round_only = true});
        EXPECT_EQ(fault_of(proven, drafter->traits().prefix_determined), "")
            << tree << ", " << verify << ", temperature " << sampling.temperature;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DeepDrafts, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Mutants ---------------------------------------------------------------------------------

// The model drafter with one fault added after it has drafted.
class BrokenDrafter : public Drafter {
 public:
  explicit BrokenDrafter(const World& world)
      : drafter_(world.materials.load_model({}, {}), world.vocabulary_size()) {}
  std::string_view name() const override { return "broken"; }
  DrafterTraits traits() const override { return drafter_.traits(); }
  void begin(const Context& context) override { drafter_.begin(context); }
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override {
    drafter_.prefill(context, tokens, features);
  }
  void propose(std::span<DraftJob> jobs) override {
    drafter_.propose(jobs);
    for (DraftJob& job : jobs) spoil(job);
  }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    return drafter_.draft_at(context, tree, node, draft_prob, raw_draft);
  }
  void observe(std::span<const RoundResult> results) override { drafter_.observe(results); }
  void end(SequenceId id) override { drafter_.end(id); }
  std::int64_t n_passes() const override { return drafter_.n_passes(); }

 protected:
  virtual void spoil(DraftJob& job) = 0;

 private:
  ModelDrafter drafter_;
};

// Records sharper distributions than its tokens were drawn from.
class Boaster final : public BrokenDrafter {
 public:
  using BrokenDrafter::BrokenDrafter;
  void spoil(DraftJob& job) override {
    for (const DraftNode& node : job.tree->nodes()) {
      if (node.draft_prob == kNoDistribution) continue;
      Distribution& dist = job.tree->distribution(node.draft_prob);
      double sum = 0;
      for (double& prob : dist.probs) sum += prob *= prob;
      for (double& prob : dist.probs) prob /= sum;
    }
  }
};

// Its distributions depend on the number of calls.
class Wanderer final : public BrokenDrafter {
 public:
  using BrokenDrafter::BrokenDrafter;
  void spoil(DraftJob& job) override {
    ++n_asked_;
    for (const DraftNode& node : job.tree->nodes()) {
      if (node.draft_prob == kNoDistribution) continue;
      Distribution& dist = job.tree->distribution(node.draft_prob);
      const double share = 1.0 / (1 + n_asked_ % 5);
      for (double& prob : dist.probs) {
        prob = (1 - share) * prob + share / static_cast<double>(dist.probs.size());
      }
    }
  }

 private:
  int n_asked_ = 0;
};

// Drafts one token more than the budget allows.
class Overrunner final : public BrokenDrafter {
 public:
  using BrokenDrafter::BrokenDrafter;
  void spoil(DraftJob& job) override {
    for (int node = job.tree->n_nodes() - 1;
         node < job.budget.n_nodes || job.tree->node(node).depth <= job.budget.depth; ++node) {
      job.tree->add_child(node, 0, kPointMass);
    }
  }
};

template <class Broken>
Proven prove_broken(const std::string& rule_spec) {
  World world = test::table_world(3);
  Broken drafter(world);
  const auto rule = make_rule(rule_spec);
  const Verification verification = make_verification(rule_spec, "exact");
  return prove({.world = &world,
                .drafter = &drafter,
                .acceptance = verification.acceptance.get(),
                .rule = rule.get(),
                .shape = make_tree_shape("chain:length=2"),
                .sampling = {.temperature = 1}});
}

TEST(DrafterMutants, DistributionsThatTokensWereNotDrawnFrom) {
  EXPECT_GT(prove_broken<Boaster>("exact").error, kCaught);
}
TEST(DrafterMutants, DistributionsThatWander) {
  EXPECT_FALSE(prove_broken<Wanderer>("diff:alpha=0.1").consistent);
}
TEST(DrafterMutants, DraftsBeyondTheirBudget) {
  EXPECT_NE(prove_broken<Overrunner>("exact").violation, "");
}

}  // namespace
}  // namespace outrider
