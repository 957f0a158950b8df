// SPDX-License-Identifier: Apache-2.0
// The contract suite, second part. With every drafter, on a random model loaded from files, the
// decode loop gives plain decoding's output bit for bit: greedily, and sampled with verification
// "coupled". A text ends in the middle of a draft as it would without one. Also: drafters that are
// of no use, and the example in docs/drafters.md. (First part, distributions by enumeration:
// drafter_exactness_test.cc. Third part, drafters' state: drafter_state_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/example_drafter.h"
#include "tests/support/nightly.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_walk.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using test::MakeDrafter;
using test::walk;
using test::Walked;
using test::World;

std::shared_ptr<const Model> target() {
  static const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  return model;
}

// A way of drafting: SpeculationOptions::tree and verify.
struct Way {
  const char* tree;
  const char* verify;
  bool is_planned = false;  // SpeculationOptions::adaptive
};

// The depths of planned drafts follow measured times, so they differ from run to run.
constexpr Way kPlanned[] = {{"", "coupled", true}, {"widths:3,2,1", "coupled", true}};

// Every kind of tree with every verification that takes it ("block" takes only chains).
std::vector<Way> all_ways() {
  std::vector<Way> all;
  for (const char* tree : {"", "chain:length=1", "chain:length=5", "widths:3,2,1", "static:eagle1",
                           "dynamic:total=20,depth=5,topk=4", "best:nodes=20,depth=5"}) {
    for (const char* verify : {"exact", "traversal", "coupled"}) all.push_back({tree, verify});
  }
  all.push_back({"chain:length=4", "block"});
  return all;
}

// Of these, a drafter's. By day a drafter has every tree and every verification, and every tree has
// every verification with some drafter; in nightly runs a drafter has all ways.
std::vector<Way> ways_of(const DrafterCase& drafter) {
  using Both = std::pair<const char*, Way>;
  static const std::vector<Both> kOfTheDay = [] {
    std::vector<Both> all;
    for (const DrafterCase& one : kDrafterCases) {
      for (const Way& way : all_ways()) all.emplace_back(one.name, way);
    }
    return test::pairs_of_the_day(all, [](const Both& both) {
      return test::CaseValues{both.first, both.second.tree, both.second.verify};
    });
  }();
  std::vector<Way> ways;
  for (const auto& [name, way] : kOfTheDay) {
    if (name == std::string_view(drafter.name)) ways.push_back(way);
  }
  return ways;
}

Generator generator_of(const DrafterCase& drafter, const Way& way) {
  SpeculationOptions options = test::speculation_of(drafter);
  options.tree = way.tree;
  options.verify = way.verify;
  options.adaptive = way.is_planned;
  Generator generator(target(), options);
  if (way.is_planned) generator.measure_passes();  // else the first generate() would
  return generator;
}

// Sampling parameters that allow only a few characters, so that texts repeat themselves
// (drafter_worlds.h).
SamplingParams few_characters(const SamplingParams& sampling = {}) {
  return DrafterFiles::get().few_characters(sampling);
}

// A prompt with repetitions, and one without.
std::vector<std::vector<TokenId>> prompts() {
  std::vector<std::vector<TokenId>> all;
  for (const char* text : {DrafterFiles::kFewPrompt, "Quick!"}) {
    all.push_back(target()->tokenizer().encode(text, true));
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class DrafterContract : public ::testing::TestWithParam<DrafterCase> {
 protected:
  // Every request must give plain decoding's ids, logits, text and finish reason, alone and with
  // all others in one batch.
  void expect_plain_output(const std::vector<Way>& ways, std::vector<GenerateRequest> requests) {
    std::vector<TokenOrigin> last(requests.size(), TokenOrigin::plain);
    for (std::size_t index = 0; index < requests.size(); ++index) {
      requests[index].options.keep_logits = true;
      requests[index].options.on_token = [&last, index](const TokenEvent& event) {
        last[index] = event.origin;
      };
    }
    const std::vector<GenerateResult> plain = Generator(target()).generate(requests);
    for (const Way& way : ways) {
      Generator generator = generator_of(GetParam(), way);
      for (std::size_t index = 0; index < requests.size(); ++index) {
        SCOPED_TRACE(std::string(way.tree) + " " + way.verify + " alone");
        last[index] = TokenOrigin::plain;
        const GenerateResult alone = std::move(generator.generate({&requests[index], 1}).front());
        expect_same(alone, plain[index], last[index]);
      }
      std::fill(last.begin(), last.end(), TokenOrigin::plain);
      const std::vector<GenerateResult> together = generator.generate(requests);
      for (std::size_t index = 0; index < requests.size(); ++index) {
        SCOPED_TRACE(std::string(way.tree) + " " + way.verify + " together");
        expect_same(together[index], plain[index], last[index]);
      }
    }
  }

  void expect_same(const GenerateResult& result, const GenerateResult& plain, TokenOrigin last) {
    // Every pass emits its accepted tokens and one more, unless the text ends at an accepted one.
    const bool ended_in_draft = last == TokenOrigin::accepted;
    EXPECT_EQ(result.ids, plain.ids);
    EXPECT_TRUE(same_bits(result.logits, plain.logits));
    EXPECT_EQ(result.text, plain.text);
    EXPECT_EQ(result.finish_reason, plain.finish_reason);
    EXPECT_EQ(
        result.statistics.emitted,
        result.statistics.accepted + result.statistics.target_passes - (ended_in_draft ? 1 : 0));
    n_accepted_ += result.statistics.accepted;
    n_ended_in_draft_ += ended_in_draft ? 1 : 0;
  }

  std::int64_t n_accepted_ = 0;
  int n_ended_in_draft_ = 0;
};

TEST_P(DrafterContract, GreedyOutputIsPlainOutputBitForBit) {
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts()) {
    for (const SamplingParams& sampling :
         {SamplingParams{}, few_characters(), few_characters({.frequency_penalty = 9})}) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 60, .sampling = sampling, .ignore_eos = true}});
    }
  }
  expect_plain_output(ways_of(GetParam()), requests);
  EXPECT_GT(n_accepted_, 0);
  expect_plain_output({std::begin(kPlanned), std::end(kPlanned)}, requests);
}

TEST_P(DrafterContract, CoupledOutputIsPlainSamplingBitForBit) {
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts()) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{9}}) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 50,
                                      .sampling = few_characters({.temperature = 0.7, .top_k = 8}),
                                      .seed = seed,
                                      .ignore_eos = true}});
    }
  }
  std::vector<Way> coupled = all_ways();
  std::erase_if(coupled, [](const Way& way) { return std::string(way.verify) != "coupled"; });
  expect_plain_output(coupled, requests);
  EXPECT_TRUE(n_accepted_ > 0 || GetParam().seldom_right);
  expect_plain_output({std::begin(kPlanned), std::end(kPlanned)}, requests);
}

// The same seed gives the same tokens, whatever else is in the batch.
TEST_P(DrafterContract, SampledOutputReplays) {
  for (const Way& way : ways_of(GetParam())) {
    std::vector<GenerateRequest> requests;
    for (const auto& prompt : prompts()) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 40,
                                      .sampling = few_characters({.temperature = 1}),
                                      .seed = 5,
                                      .ignore_eos = true}});
    }
    const std::vector<GenerateResult> together = generator_of(GetParam(), way).generate(requests);
    for (std::size_t index = 0; index < requests.size(); ++index) {
      EXPECT_EQ(generator_of(GetParam(), way).generate({&requests[index], 1}).front().ids,
                together[index].ids)
          << way.tree << " " << way.verify;
    }
  }
}

TEST_P(DrafterContract, TokenLimits) {
  std::vector<GenerateRequest> requests;
  for (int limit = 0; limit <= 14; ++limit) {
    requests.push_back(
        {.prompt = prompts().front(),
         .options = {.max_tokens = limit, .sampling = few_characters(), .ignore_eos = true}});
  }
  expect_plain_output(ways_of(GetParam()), requests);
}

TEST_P(DrafterContract, TheEndOfTheContext) {
  const auto n_context = static_cast<std::size_t>(target()->summary().context_length);
  std::vector<TokenId> text;
  while (text.size() < n_context) {
    const auto prompt = prompts().front();
    text.insert(text.end(), prompt.begin(), prompt.end());
  }
  std::vector<GenerateRequest> requests;
  for (const std::size_t left : {1, 2, 3, 9}) {
    requests.push_back(
        {.prompt = {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_context - left)},
         .options = {.max_tokens = 40, .sampling = few_characters(), .ignore_eos = true}});
  }
  // Prompts are as long as the context, which takes time: by day drafters take turns at the ways.
  std::vector<Way> ways = {
      {"", "exact"}, {"chain:length=5", "coupled"}, {"widths:3,2,1", "traversal"}};
  const auto* const drafter = std::find_if(
      std::begin(kDrafterCases), std::end(kDrafterCases),
      [](const DrafterCase& one) { return one.name == std::string_view(GetParam().name); });
  const auto turn = static_cast<std::size_t>(drafter - std::begin(kDrafterCases));
  if (!test::nightly()) ways = {ways[turn % ways.size()]};
  expect_plain_output(ways, requests);
}

// Each token of a plain text is its stop token in turn. The first text has used all of its
// characters after two tokens, before drafters that do not read the prompt begin to draft. In the
// second text "&" comes seventh, when they do draft.
TEST_P(DrafterContract, StopTokensInMidDraft) {
  const GenerateOptions options{.max_tokens = 40, .sampling = few_characters(), .ignore_eos = true};
  const std::vector<std::vector<TokenId>> starts = {
      prompts().front(), target()->tokenizer().encode("A small test", true)};
  std::vector<GenerateRequest> requests;
  for (const std::vector<TokenId>& prompt : starts) {
    const GenerateRequest request{.prompt = prompt, .options = options};
    const GenerateResult plain = std::move(Generator(target()).generate({&request, 1}).front());
    for (const TokenId stop : plain.ids) {
      requests.push_back({.prompt = prompt, .options = options});
      requests.back().options.stop_tokens = {stop};
    }
  }
  expect_plain_output(ways_of(GetParam()), requests);
  EXPECT_TRUE(n_ended_in_draft_ > 0 || GetParam().seldom_right);
}

TEST_P(DrafterContract, StopStringsInMidDraft) {
  const GenerateOptions options{.max_tokens = 40, .sampling = few_characters(), .ignore_eos = true};
  const std::vector<TokenId> prompt = prompts().front();
  const GenerateRequest request{.prompt = prompt, .options = options};
  const std::string text = std::move(Generator(target()).generate({&request, 1}).front()).text;
  std::vector<GenerateRequest> requests;
  for (std::size_t at = 0; at + 3 < text.size(); at += 5) {
    requests.push_back({.prompt = prompt, .options = options});
    requests.back().options.stop_strings = {text.substr(at, 3)};
  }
  expect_plain_output(ways_of(GetParam()), requests);
  EXPECT_TRUE(n_ended_in_draft_ > 0 || GetParam().seldom_right);
}

INSTANTIATE_TEST_SUITE_P(, DrafterContract, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// No way is left out, and no drafter.
TEST(DrafterContractWays, EveryWayIsSomeDrafters) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const DrafterCase& drafter : kDrafterCases) {
    const std::vector<Way> ways = ways_of(drafter);
    EXPECT_GE(ways.size(), 8U) << drafter.name;
    for (const Way& way : ways) seen.insert({way.tree, way.verify});
  }
  EXPECT_EQ(seen.size(), all_ways().size());
}

// --- Drafters that remember earlier texts ----------------------------------------------------

GenerateRequest sixty_tokens(double temperature) {
  return {.prompt = prompts().back(),
          .options = {.max_tokens = 60,
                      .sampling = {.temperature = temperature, .top_k = 20},
                      .seed = 4,
                      .ignore_eos = true,
                      .keep_logits = true}};
}

// When a text is repeated, more drafts are accepted, and no output changes.
class LookupAcrossTexts : public ::testing::TestWithParam<const char*> {};

TEST_P(LookupAcrossTexts, ChangesHowFastATextComesAndNotTheText) {
  Generator generator(target(), {.drafter = GetParam(), .verify = "coupled"});
  Generator plain(target());
  std::int64_t accepted_before = 0;
  for (const double temperature : {0.0, 1.0}) {
    const GenerateRequest request = sixty_tokens(temperature);
    const GenerateResult expected = std::move(plain.generate({&request, 1}).front());
    for (const bool again : {false, true}) {
      const GenerateResult result = std::move(generator.generate({&request, 1}).front());
      EXPECT_EQ(result.ids, expected.ids);
      EXPECT_TRUE(same_bits(result.logits, expected.logits));
      if (again) {
        EXPECT_GT(result.statistics.accepted, accepted_before + 20);
      }
      accepted_before = result.statistics.accepted;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, LookupAcrossTexts,
                         ::testing::Values("suffix:across=1000", "ngram:across=100000"),
                         [](const auto& info) {
                           const std::string_view spec = info.param;
                           return std::string(spec.substr(0, spec.find(':')));
                         });

// The same for recycling: a repeated text drafts from its first round on, so another number of
// tokens is drafted; no text differs.
TEST(RecyclingAcrossTexts, ChangesDraftsAndNotTheText) {
  Generator generator(target(), {.drafter = "recycling:across=1000", .verify = "coupled"});
  Generator plain(target());
  for (const double temperature : {0.0, 1.0}) {
    const GenerateRequest request = sixty_tokens(temperature);
    const GenerateResult expected = std::move(plain.generate({&request, 1}).front());
    std::int64_t drafted_before = -1;
    for (int time = 0; time < 2; ++time) {
      const GenerateResult result = std::move(generator.generate({&request, 1}).front());
      EXPECT_EQ(result.ids, expected.ids);
      EXPECT_TRUE(same_bits(result.logits, expected.logits));
      EXPECT_NE(result.statistics.drafted, drafted_before);
      drafted_before = result.statistics.drafted;
    }
  }
}

// --- Drafters of no use ----------------------------------------------------------------------

// Proposes trees of random tokens and shapes, with scratch nodes, within the job's budget.
class RubbishDrafter : public Drafter {
 public:
  explicit RubbishDrafter(int vocabulary_size) : vocabulary_size_(vocabulary_size) {}
  std::string_view name() const override { return "rubbish"; }
  DrafterTraits traits() const override { return {}; }
  void begin(const Context&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      const int n_nodes = below(std::min(job.budget.n_nodes, 12) + 1);
      for (int n = 0; n < n_nodes; ++n) {
        const int parent =
            job.shape->is_chain() ? job.tree->n_nodes() - 1 : below(job.tree->n_nodes());
        if (job.tree->node(parent).depth == job.budget.depth) continue;
        job.tree->add_child(parent, below(vocabulary_size_), kPointMass);
      }
      for (int n = below(4); n > 0; --n) {
        const int parent = below(job.tree->n_nodes());
        if (job.tree->node(parent).depth >= job.budget.scratch_depth) continue;
        job.tree->add_scratch(parent, below(vocabulary_size_));
      }
    }
  }
  void observe(std::span<const RoundResult>) override {}
  void end(SequenceId) override {}
  std::int64_t n_passes() const override { return 0; }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  int vocabulary_size_;
  std::mt19937 random_{7};
};

// Proposes nothing.
class SilentDrafter final : public RubbishDrafter {
 public:
  using RubbishDrafter::RubbishDrafter;
  void propose(std::span<DraftJob>) override {}
};

// The tokens that the decode loop commits for each prompt, with their logits.
struct Written {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<float> logits;
};
// Plain decoding for a null drafter.
Written write(World& world, Drafter* drafter, const std::string& tree, const std::string& verify,
              double temperature) {
  const Verification verification = make_verification("exact", verify);
  Decoder decoder(*world.target, drafter, *verification.acceptance, make_tree_shape(tree), nullptr);
  Written written;
  for (const std::size_t n_prompt : {world.prompt.size(), std::size_t{1}}) {
    CounterChance chance(3);
    Stream stream(0, std::span(world.prompt).first(n_prompt),
                  Transform({.temperature = temperature}, world.vocabulary_size()), chance);
    stream.max_total = stream.n_prompt + 25;
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    while (!stream.finished) {
      decoder.round(streams, [&written](Stream& text, const Committed& committed) {
        const auto row = text.views.logits(committed.logits_node).values();
        written.logits.insert(written.logits.end(), row.begin(), row.end());
        return false;
      });
    }
    decoder.end(stream);
    written.tokens.push_back(stream.tokens);
  }
  return written;
}

template <class SomeDrafter>
void expect_plain_text() {
  World world = test::stored_world(1);
  for (const double temperature : {0.0, 1.0}) {
    const Written plain = write(world, nullptr, "", "coupled", temperature);
    for (const char* tree : {"chain:length=6", "widths:3,2,2"}) {
      for (const std::string verify : {"exact", "block", "traversal", "coupled"}) {
        if (verify == "block" && tree[0] != 'c') continue;  // it takes only chains
        // Others sample the same distribution, but not the same tokens.
        if (verify != "coupled" && temperature > 0) continue;
        SomeDrafter drafter(world.vocabulary_size());
        const Written drafted = write(world, &drafter, tree, verify, temperature);
        EXPECT_EQ(drafted.tokens, plain.tokens) << tree << " " << verify;
        EXPECT_TRUE(same_bits(drafted.logits, plain.logits)) << tree << " " << verify;
      }
    }
  }
}

TEST(DraftersOfNoUse, ProposeNothing) { expect_plain_text<SilentDrafter>(); }
TEST(DraftersOfNoUse, ProposeRubbish) { expect_plain_text<RubbishDrafter>(); }

// --- The documented example ------------------------------------------------------------------

TEST(ExampleDrafter, KeepsTheContract) {
  expect_plain_text<LastTimeDrafter>();
  const DrafterPlan plan = read_last_time_drafter(Spec::parse("drafter", "last-time:length=5"));
  const MakeDrafter make = [&plan](const World& world) { return plan.make(world.materials); };
  const Walked walked =
      walk(make, plan.shape, {.temperature = 1}, /*context_determined=*/true, /*seed=*/1);
  EXPECT_EQ(walked.difference, "");
  EXPECT_EQ(walked.violation, "");
  EXPECT_GT(walked.n_accepted, 10);
}

TEST(ExampleDrafter, IsTheOneThatTheDocumentShows) {
  const auto read = [](const char* path) {
    std::ifstream file(std::filesystem::path(OUTRIDER_SOURCE_DIR) / path);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  const std::string code = read("tests/support/example_drafter.h");
  const std::size_t begin = code.find("namespace outrider {");
  const std::string end = "}  // namespace outrider\n";
  ASSERT_NE(begin, std::string::npos);
  const std::string shown = code.substr(begin, code.find(end) + end.size() - begin);
  EXPECT_NE(read("docs/drafters.md").find("```cpp\n" + shown + "```"), std::string::npos);
}

}  // namespace
}  // namespace outrider
