// The contract suite, second part: for every drafter, on a random model in files, what the loop
// gives is plain decoding's output bit for bit; texts end in mid-draft as they would without one;
// and the drafter's state, whatever was accepted, rejected or ended before, is that of one rebuilt
// from scratch. Then drafters whose state is broken, which the same walk must notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/make_rule.h"
#include "engine/make_tree_shape.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/checked_drafter.h"
#include "tests/support/drafter_cases.h"
#include "tests/support/drafter_worlds.h"
#include "tests/support/example_drafter.h"

namespace outrider {
namespace {

using testing::CheckedDrafter;
using testing::DrafterCase;
using testing::DrafterFiles;
using testing::kDrafterCases;
using testing::World;

std::shared_ptr<const Model> target() {
  static const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  return model;
}

struct Way {
  const char* tree;
  const char* verify;
};

// Every tree with every verification that takes it.
std::vector<Way> ways() {
  std::vector<Way> all;
  for (const char* tree : {"", "chain:length=1", "chain:length=5", "widths:3,2,1", "static:eagle1",
                           "dynamic:total=20,depth=5,topk=4"}) {
    for (const char* verify : {"exact", "traversal", "coupled"}) all.push_back({tree, verify});
  }
  all.push_back({"chain:length=4", "block"});
  return all;
}

Generator generator_of(const DrafterCase& drafter, const Way& way) {
  return Generator(target(), {.drafter = DrafterFiles::get().spec(drafter),
                              .tree = way.tree,
                              .verify = way.verify,
                              .drafter_options = {.threads = 1}});
}

// Few characters to write (drafter_worlds.h).
SamplingParams few(const SamplingParams& sampling = {}) {
  return DrafterFiles::get().few_characters(sampling);
}

// A text that repeats itself, and one that does not.
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
  // Ids, logits, text and why it ended, of every request alone and of all together.
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
         {SamplingParams{}, few(), few({.frequency_penalty = 9})}) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 60, .sampling = sampling, .ignore_eos = true}});
    }
  }
  expect_plain_output(ways(), requests);
  EXPECT_GT(n_accepted_, 0);
}

TEST_P(DrafterContract, CoupledOutputIsPlainSamplingBitForBit) {
  std::vector<GenerateRequest> requests;
  for (const auto& prompt : prompts()) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{9}}) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 50,
                                      .sampling = few({.temperature = 0.7, .top_k = 8}),
                                      .seed = seed,
                                      .ignore_eos = true}});
    }
  }
  std::vector<Way> coupled = ways();
  std::erase_if(coupled, [](const Way& way) { return std::string(way.verify) != "coupled"; });
  expect_plain_output(coupled, requests);
  EXPECT_GT(n_accepted_, 0);
}

// Seeded sampling replays, in any company.
TEST_P(DrafterContract, SampledOutputReplays) {
  for (const Way& way : ways()) {
    std::vector<GenerateRequest> requests;
    for (const auto& prompt : prompts()) {
      requests.push_back({.prompt = prompt,
                          .options = {.max_tokens = 40,
                                      .sampling = few({.temperature = 1}),
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
    requests.push_back({.prompt = prompts().front(),
                        .options = {.max_tokens = limit, .sampling = few(), .ignore_eos = true}});
  }
  expect_plain_output(ways(), requests);
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
         .options = {.max_tokens = 40, .sampling = few(), .ignore_eos = true}});
  }
  expect_plain_output({{"", "exact"}, {"chain:length=5", "coupled"}, {"widths:3,2,1", "traversal"}},
                      requests);
}

// Every token of a plain text ends it in turn.
TEST_P(DrafterContract, StopTokensInMidDraft) {
  const GenerateOptions options{.max_tokens = 40, .sampling = few(), .ignore_eos = true};
  const std::vector<TokenId> prompt = prompts().front();
  const GenerateRequest request{.prompt = prompt, .options = options};
  const GenerateResult plain = std::move(Generator(target()).generate({&request, 1}).front());
  std::vector<GenerateRequest> requests;
  for (const TokenId stop : plain.ids) {
    requests.push_back({.prompt = prompt, .options = options});
    requests.back().options.stop_tokens = {stop};
  }
  expect_plain_output(ways(), requests);
  EXPECT_TRUE(n_ended_in_draft_ > 0 || GetParam().seldom_right);
}

TEST_P(DrafterContract, StopStringsInMidDraft) {
  const GenerateOptions options{.max_tokens = 40, .sampling = few(), .ignore_eos = true};
  const std::vector<TokenId> prompt = prompts().front();
  const GenerateRequest request{.prompt = prompt, .options = options};
  const std::string text = std::move(Generator(target()).generate({&request, 1}).front()).text;
  std::vector<GenerateRequest> requests;
  for (std::size_t at = 0; at + 3 < text.size(); at += 5) {
    requests.push_back({.prompt = prompt, .options = options});
    requests.back().options.stop_strings = {text.substr(at, 3)};
  }
  expect_plain_output(ways(), requests);
  EXPECT_TRUE(n_ended_in_draft_ > 0 || GetParam().seldom_right);
}

INSTANTIATE_TEST_SUITE_P(, DrafterContract, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// --- State -----------------------------------------------------------------------------------

// Takes any path, as often as not to a leaf, and any token behind it; asks the drafter now and then
// what follows there. A function of its seed, the text's length and the tree.
class RandomVerdicts final : public Acceptance {
 public:
  RandomVerdicts(int vocabulary_size, bool asks_at_leaves)
      : vocabulary_size_(vocabulary_size), asks_at_leaves_(asks_at_leaves) {}
  std::string_view name() const override { return "random"; }
  RuleNeeds needs() const override { return {.leaf_draft = asks_at_leaves_}; }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    const auto below = [&](int n, int node) {
      std::vector<double> probs(static_cast<std::size_t>(n), 1.0 / n);
      return chance.categorical(Distribution::dense(probs),
                                {tree.n_committed(), node, Purpose::accept});
    };
    verdict.path.clear();
    int node = 0;
    for (;;) {
      std::vector<int> children;
      for (int child = tree.next_child(node, node); child >= 0;
           child = tree.next_child(node, child)) {
        children.push_back(child);
      }
      const int choice = below(static_cast<int>(children.size()) + 1, 2 * node);
      // The first child stands twice as often as any other, or drafts of index drafters, most of
      // which are chains, would be cut short too often.
      if (children.empty() || (choice == 0 && below(2, 2 * node + 1) == 0)) break;
      node = children[static_cast<std::size_t>(std::max(choice - 1, 0))];
      verdict.path.push_back(node);
    }
    if (asks_at_leaves_ && below(2, 1000 + node) == 0) (void)views.draft(node);
    // The target's own token often enough that texts repeat themselves, or any other.
    verdict.next = below(8, 2000 + node) > 0 ? views.target(node).argmax()
                                             : below(vocabulary_size_, 3000 + node);
    verdict.corrected = !views.is_leaf(node);
    verdict.next_prob = Distribution::point_mass(verdict.next);
    verdict.costs.assign(verdict.path.size() + 1, {});
  }

 private:
  int vocabulary_size_;
  bool asks_at_leaves_;
};

// Everything that verification sees of a draft. Empty: the same.
std::string difference(const DraftTree& a, const DraftTree& b) {
  if (a.n_nodes() != b.n_nodes()) {
    return std::to_string(a.n_nodes()) + " nodes, from scratch " + std::to_string(b.n_nodes());
  }
  const auto same_law = [&](int of_a, int of_b) {
    if (of_a < 0 || of_b < 0) return of_a == of_b;
    return a.distribution(of_a).ids == b.distribution(of_b).ids &&
           a.distribution(of_a).probs == b.distribution(of_b).probs;
  };
  for (int node = 0; node < a.n_nodes(); ++node) {
    const DraftNode& x = a.node(node);
    const DraftNode& y = b.node(node);
    if (x.token != y.token || x.parent != y.parent || x.draws != y.draws ||
        !same_law(x.proposal, y.proposal) || !same_law(x.draft_prob, y.draft_prob)) {
      return "another node " + std::to_string(node);
    }
  }
  return {};
}

using MakeDrafter = std::function<std::unique_ptr<Drafter>(const World&)>;

struct Walked {
  std::string difference;  // the first that was found
  std::string violation;   // CheckedDrafter's
  int n_drafts = 0;        // that were not empty
  std::int64_t n_accepted = 0;
};

// Three texts at a time that begin and end at random; every draft is compared with that of a
// drafter made for it, which is given the text as a prompt (or, for drafters that remember more
// than the text, with that of one that has been told of the same rounds and of no other text).
Walked walk(const MakeDrafter& make, const std::shared_ptr<const TreeShape>& shape,
            const SamplingParams& sampling, bool context_determined, std::uint32_t seed) {
  World world = testing::stored_world(seed);
  const auto drafter = make(world);
  CheckedDrafter checked(*drafter, world.vocabulary_size());
  const RandomVerdicts verdicts(world.vocabulary_size(), drafter->traits().has_draft_prob);
  Decoder decoder(*world.target, &checked, verdicts, shape, nullptr);
  const Transform transform(few(sampling), world.vocabulary_size());
  const CommitFunction go_on = [](Stream&, const Committed&) { return false; };
  std::mt19937 random(seed);
  Walked walked;

  // A text, and for drafters with a memory the drafter that sees nothing else.
  struct Text {
    Text(SequenceId id, const World& world, const Transform& transform, std::uint32_t text_seed)
        : chance(text_seed), stream(id, world.prompt, transform, chance) {
      stream.max_total = 1000;
    }
    CounterChance chance;
    Stream stream;
    std::unique_ptr<Drafter> alone;
    std::unique_ptr<Decoder> alone_decoder;
    std::unique_ptr<Stream> alone_stream;
  };
  std::deque<std::unique_ptr<Text>> texts;
  SequenceId next_id = 0;
  for (int round = 0; round < 40; ++round) {
    while (texts.size() < 3) {
      const auto text_seed = static_cast<std::uint32_t>(random());
      texts.push_back(std::make_unique<Text>(next_id++, world, transform, text_seed));
      Text& text = *texts.back();
      decoder.begin(text.stream);
      if (context_determined) continue;
      text.alone = make(world);
      text.alone_decoder =
          std::make_unique<Decoder>(*world.target, text.alone.get(), verdicts, shape, nullptr);
      text.alone_stream =
          std::make_unique<Stream>(text.stream.id, world.prompt, transform, text.chance);
      text.alone_stream->max_total = text.stream.max_total;
      text.alone_decoder->begin(*text.alone_stream);
    }
    std::vector<Stream*> streams;
    streams.reserve(texts.size());
    for (const auto& text : texts) streams.push_back(&text->stream);
    // Not every text is in every round.
    if (round % 3 == 1) streams.erase(streams.begin() + random() % streams.size());
    // A text begun on what has been committed so far; its one round is compared.
    std::vector<std::unique_ptr<Stream>> fresh;
    for (Stream* stream : streams) {
      const auto text = std::find_if(texts.begin(), texts.end(), [&](const auto& candidate) {
        return &candidate->stream == stream;
      });
      if (!context_determined) {
        Stream* const alone[] = {(*text)->alone_stream.get()};
        (*text)->alone_decoder->round(alone, go_on);
        continue;
      }
      const auto rebuilt = make(world);
      Decoder from_scratch(*world.target, rebuilt.get(), verdicts, shape, nullptr);
      fresh.push_back(
          std::make_unique<Stream>(stream->id, stream->tokens, transform, *stream->chance));
      fresh.back()->history = stream->history;
      fresh.back()->max_total = stream->max_total;
      from_scratch.begin(*fresh.back());
      Stream* const one[] = {fresh.back().get()};
      from_scratch.round(one, go_on);
    }
    decoder.round(streams, go_on);
    for (std::size_t index = 0; index < streams.size(); ++index) {
      const Stream* other = context_determined ? fresh[index].get() : nullptr;
      if (other == nullptr) {
        for (const auto& text : texts) {
          if (&text->stream == streams[index]) other = text->alone_stream.get();
        }
      }
      const std::string found = difference(streams[index]->tree, other->tree);
      if (!found.empty() && walked.difference.empty()) {
        walked.difference = "round " + std::to_string(round) + ": " + found;
      }
      walked.n_drafts += streams[index]->tree.n_drafted() > 0 ? 1 : 0;
    }
    if (round % 7 == 6) {
      const auto at = static_cast<std::ptrdiff_t>(random() % texts.size());
      walked.n_accepted += texts[static_cast<std::size_t>(at)]->stream.counts.accepted;
      decoder.end(texts[static_cast<std::size_t>(at)]->stream);
      texts.erase(texts.begin() + at);
    }
  }
  for (const auto& text : texts) walked.n_accepted += text->stream.counts.accepted;
  walked.violation = checked.violation();
  return walked;
}

class DrafterState : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(DrafterState, IsThatOfOneRebuiltFromScratch) {
  const DrafterPlan plan = testing::plan_of(GetParam());
  const MakeDrafter make = [&plan](const World& world) { return plan.make(world.materials); };
  std::uint32_t seed = 1;
  for (const std::string tree :
       {"", "chain:length=3", "widths:3,2,1", "static:eagle1", "dynamic:total=9,depth=4,topk=3"}) {
    for (const SamplingParams& sampling :
         {SamplingParams{.temperature = 1}, SamplingParams{.temperature = 0},
          SamplingParams{.temperature = 0.8, .repetition_penalty = 1.3}}) {
      const Walked walked = walk(make, tree.empty() ? plan.shape : make_tree_shape(tree), sampling,
                                 GetParam().context_determined, seed++);
      EXPECT_EQ(walked.difference, "") << tree << ", temperature " << sampling.temperature;
      EXPECT_EQ(walked.violation, "") << tree;
      EXPECT_GT(walked.n_drafts, 20) << tree;
      EXPECT_GT(walked.n_accepted, 10) << tree;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, DrafterState, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// --- Earlier texts ---------------------------------------------------------------------------

// A drafter that remembers other texts is faster for it, and writes nothing else.
TEST(SuffixAcrossTexts, ChangesHowFastATextComesAndNotTheText) {
  Generator generator(target(), {.drafter = "suffix:across=1000", .verify = "coupled"});
  Generator plain(target());
  const std::vector<TokenId> prompt = prompts().back();
  std::int64_t accepted_before = 0;
  for (const double temperature : {0.0, 1.0}) {
    const GenerateRequest request{.prompt = prompt,
                                  .options = {.max_tokens = 60,
                                              .sampling = {.temperature = temperature, .top_k = 20},
                                              .seed = 4,
                                              .ignore_eos = true,
                                              .keep_logits = true}};
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

// --- Nothing and rubbish ---------------------------------------------------------------------

// Trees of random tokens and shapes, scratch nodes among them, within what the job allows.
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

class SilentDrafter final : public RubbishDrafter {
 public:
  using RubbishDrafter::RubbishDrafter;
  void propose(std::span<DraftJob>) override {}
};

// What the loop commits to a text of each prompt, with the logits behind it.
struct Written {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<float> logits;
};
Written write(World& world, Drafter* drafter, const std::string& tree, const std::string& verify,
              double temperature) {
  const Judging judging = make_judging("exact", verify);
  Decoder decoder(*world.target, drafter, *judging.acceptance, make_tree_shape(tree), nullptr);
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
        const auto row = text.views.logits(committed.logits_node);
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
  World world = testing::stored_world(1);
  for (const double temperature : {0.0, 1.0}) {
    const Written plain = write(world, nullptr, "", "coupled", temperature);
    for (const char* tree : {"chain:length=6", "widths:3,2,2"}) {
      for (const std::string verify : {"exact", "block", "traversal", "coupled"}) {
        if (verify == "block" && tree[0] != 'c') continue;
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
  const Walked walked = walk(make, plan.shape, {.temperature = 1}, true, 1);
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

// --- Mutants ---------------------------------------------------------------------------------

// The model drafter told something else than what happened.
class MisinformedDrafter : public Drafter {
 public:
  explicit MisinformedDrafter(const World& world)
      : drafter_(load_model(DrafterFiles::get().target().parent_path() / "draft", {.n_threads = 1}),
                 world.vocabulary_size()) {}
  std::string_view name() const override { return "misinformed"; }
  DrafterTraits traits() const override { return drafter_.traits(); }
  void begin(const Context& context) override { drafter_.begin(context); }
  void prefill(const Context& context, std::span<const TokenId> tokens,
               const FeatureRows& features) override {
    drafter_.prefill(context, tokens, features);
  }
  void propose(std::span<DraftJob> jobs) override { drafter_.propose(jobs); }
  bool draft_at(const Context& context, const DraftTree& tree, int node, Distribution& draft_prob,
                Distribution* raw_draft) override {
    return drafter_.draft_at(context, tree, node, draft_prob, raw_draft);
  }
  void observe(std::span<const RoundResult> results) override { drafter_.observe(results); }
  void end(SequenceId id) override { drafter_.end(id); }
  std::int64_t n_passes() const override { return drafter_.n_passes(); }

 protected:
  ModelDrafter drafter_;
};

// Takes the first child for the accepted one: keys and values of rejected siblings stay.
class KeepsTheWrongSibling final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void observe(std::span<const RoundResult> results) override {
    for (RoundResult result : results) {
      Verdict verdict = *result.verdict;
      if (!verdict.path.empty()) {
        verdict.path.back() =
            result.tree->next_child(result.tree->node(verdict.path.back()).parent,
                                    result.tree->node(verdict.path.back()).parent);
      }
      result.verdict = &verdict;
      drafter_.observe({&result, 1});
    }
  }
};

// Noise by the order of calls.
class RollsItsOwnDice final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) job.chance = &chances_.emplace_back(chances_.size());
    drafter_.propose(jobs);
  }

 private:
  std::deque<CounterChance> chances_;
};

// Takes all texts for one.
class ConfusesTexts final : public MisinformedDrafter {
 public:
  using MisinformedDrafter::MisinformedDrafter;
  void begin(const Context& context) override {
    Context shifted = context;
    shifted.id = 0;
    if (!begun_) drafter_.begin(shifted);
    begun_ = true;
  }
  void prefill(const Context&, std::span<const TokenId>, const FeatureRows&) override {}
  void propose(std::span<DraftJob> jobs) override {
    for (DraftJob& job : jobs) {
      Context shared = *job.context;
      shared.id = 0;
      DraftJob changed = job;
      changed.context = &shared;
      drafter_.propose({&changed, 1});
    }
  }
  bool draft_at(const Context&, const DraftTree&, int, Distribution&, Distribution*) override {
    return false;
  }
  void observe(std::span<const RoundResult> results) override {
    for (RoundResult result : results) {
      Context shared = *result.context;
      shared.id = 0;
      result.context = &shared;
      drafter_.observe({&result, 1});
    }
  }
  void end(SequenceId) override {}

 private:
  bool begun_ = false;
};

template <class Broken>
std::string found_in(const std::string& tree) {
  const MakeDrafter make = [](const World& world) { return std::make_unique<Broken>(world); };
  try {
    return walk(make, make_tree_shape(tree), {.temperature = 1}, true, 1).difference;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(DrafterStateMutants, TheOriginalPasses) {
  EXPECT_EQ(found_in<MisinformedDrafter>("widths:3,2,1"), "");
}
TEST(DrafterStateMutants, KeepsTheWrongSibling) {
  EXPECT_NE(found_in<KeepsTheWrongSibling>("widths:3,2,1"), "");
}
TEST(DrafterStateMutants, RollsItsOwnDice) {
  EXPECT_NE(found_in<RollsItsOwnDice>("chain:length=3"), "");
}
TEST(DrafterStateMutants, ConfusesTexts) {
  EXPECT_NE(found_in<ConfusesTexts>("chain:length=3"), "");
}

}  // namespace
}  // namespace outrider
