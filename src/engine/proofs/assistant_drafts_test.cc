// SPDX-License-Identifier: Apache-2.0
// Texts drafted by a Gemma 4 assistant, which reads the target's KV cache, have the bits of plain
// ones: in chains and trees, in batches and after kept texts. The drafts are those of transformers.
#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "model/heads/gemma4_assistant.h"
#include "model/load_model.h"
#include "outrider/batch.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/own_parts.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/tree_shapes/dynamic_shape.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/goldens/golden_assistants.h"
#include "tests/support/models/tiny_tokenizer.h"
#include "tests/support/proofs/drafted_text.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::draft_text;
using test::GoldenAssistant;

// Writes the target's directory with a tokenizer of a few bytes, which a Model needs, and the
// assistant into a subfolder.
void write_target(const GoldenAssistant& golden, const fs::path& directory) {
  constexpr int kBytes = 258;
  fs::copy(golden.target, directory, fs::copy_options::recursive);
  fs::copy(golden.folder, directory / "assistant");
  test::TinyVocabulary vocabulary = test::make_tiny_vocabulary(kBytes);
  vocabulary.tokens.resize(golden.logits.front().size());
  vocabulary.merges.clear();
  std::ofstream(directory / "tokenizer.json") << test::tokenizer_json(vocabulary);
}

std::string spec_of(const GoldenAssistant& golden) { return "mtp:" + golden.folder.string(); }

class AssistantDrafts : public ::testing::TestWithParam<std::tuple<std::string, const char*>> {};

TEST_P(AssistantDrafts, HaveTheBitsOfPlainTexts) {
  const auto& [name, weights] = GetParam();
  const GoldenAssistant golden(name);
  const test::TemporaryDirectory directory;
  write_target(golden, directory.path() / "target");
  const auto target = Model::load(directory.path() / "target", {.weights = weights, .threads = 2});
  test::expect_bits_of_plain_texts(target, golden.text(),
                                   {spec_of(golden), spec_of(golden) + ",weights=int4"});
}

INSTANTIATE_TEST_SUITE_P(All, AssistantDrafts,
                         ::testing::Combine(::testing::ValuesIn(test::golden_assistants()),
                                            ::testing::Values("f32", "int8")),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param);
                         });

void expect_drafts_of(const GoldenAssistant& golden, const std::string& spec) {
  SCOPED_TRACE(spec);
  const auto target = test::load_f32(golden.target);
  const auto drafter = read_drafter(spec).make(
      {.target = target.get(),
       .target_path = golden.target,
       .vocabulary_size = target->config().vocabulary_size,
       .load = {.weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 2}});
  EXPECT_EQ(drafter->name(), "mtp");
  const auto n_drafted = static_cast<int>(golden.logits.size());
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(*target, drafter.get(), *acceptance, chain_shape(n_drafted), nullptr);
  CounterChance chance(1);
  Stream stream(1, golden.text(), Transform({.temperature = 0}, target->config().vocabulary_size),
                chance);
  stream.max_total = target->config().context_length;
  decoder.begin(stream);
  Stream* const streams[] = {&stream};
  decoder.round(streams, [](Stream&, const Committed&) { return false; });
  ASSERT_EQ(stream.tree.n_drafted(), n_drafted);
  for (int i = 0; i < n_drafted; ++i) {
    EXPECT_EQ(stream.tree.node(i + 1).token,
              golden.tokens[golden.n_text + static_cast<std::size_t>(i)]);
  }
  EXPECT_EQ(drafter->n_passes(), n_drafted);
  decoder.end(stream);
}

class AssistantDraftsGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(AssistantDraftsGolden, AreTheTokensOfTransformers) {
  const GoldenAssistant golden(GetParam());
  expect_drafts_of(golden, spec_of(golden));
}

// The assistant's GGUF file has no clusters; without them it makes the same drafts.
TEST(AssistantDraftsGguf, AreTheTokensOfTransformers) {
  const GoldenAssistant golden("whole");
  expect_drafts_of(golden, spec_of(golden) + "/model.gguf");
}

INSTANTIATE_TEST_SUITE_P(All, AssistantDraftsGolden, ::testing::ValuesIn(test::golden_assistants()),
                         [](const auto& info) { return info.param; });

// In a tree with renumbered nodes, the distribution after each node, kept or not, equals that of
// rows run along its path alone.
TEST_P(AssistantDraftsGolden, NodesHaveTheDistributionsOfTheirPaths) {
  const GoldenAssistant golden(GetParam());
  const LoadOptions options{.weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 1};
  const auto target = load_model(golden.target, options);
  const int n_tokens = target->config().vocabulary_size;
  const auto drafter = read_drafter(spec_of(golden))
                           .make({.target = target.get(),
                                  .target_path = golden.target,
                                  .vocabulary_size = n_tokens,
                                  .load = options});
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(*target, drafter.get(), *acceptance, chain_shape(1), nullptr);
  CounterChance chance(1);
  Stream stream(1, golden.text(), Transform({.temperature = 1}, n_tokens), chance);
  stream.max_total = target->config().context_length;
  decoder.begin(stream);
  const Context context = stream.context();
  const auto assistant = load_gemma4_assistant(golden.folder, *target, options);
  const auto before = target->open({});
  const TokenBlock block{
      .sequence = before.get(),
      .tokens = std::span<const TokenId>(stream.tokens).first(stream.tokens.size() - 1),
      .parents = {}};
  ForwardOutput of_target;
  target->forward({&block, 1}, {.feature_layers = assistant->feature_layers()}, of_target);
  const std::span<const float> state =
      of_target.feature_row(static_cast<int>(block.tokens.size()) - 1);
  for (const int total : {4, 6, 9, 13, 20, 27}) {
    const DynamicShape shape({.total = total, .depth = 4, .top_k = 3});
    DraftTree tree;
    tree.reset(stream.tokens.back(), static_cast<std::int64_t>(stream.tokens.size()));
    DraftJob job{.context = &context,
                 .budget = {.depth = 4, .n_nodes = 60},  // more than are kept
                 .shape = &shape,
                 .chance = &chance,
                 .tree = &tree,
                 .judged = stream.sequence.get(),
                 .asks_at_leaves = true};
    drafter->propose({&job, 1});
    ASSERT_EQ(tree.n_drafted(), total);
    for (int node = 0; node < tree.n_nodes(); ++node) {
      Distribution asked;
      const int known = tree.node(node).draft_prob;
      if (known < 0) {
        ASSERT_TRUE(drafter->draft_at(context, tree, node, asked, nullptr)) << "node " << node;
      }
      const Distribution& dist = known < 0 ? asked : tree.distribution(known);
      std::vector<int> path;
      for (int at = node; at >= 0; at = tree.node(at).parent) path.insert(path.begin(), at);
      std::vector<float> given(state.begin(), state.end());
      ForwardOutput rows;
      for (const int at : path) {
        const KeyReaders reader{.sequence = stream.sequence.get(), .n_rows = 1};
        const TokenId token = tree.node(at).token;
        assistant->forward({&reader, 1}, {&token, 1}, given, rows);
        given.assign(rows.feature_row(0).begin(), rows.feature_row(0).end());
      }
      Distribution expected;
      stream.transform.distribution(rows.logits_row(0), expected);
      for (TokenId token = 0; token < n_tokens; ++token) {
        ASSERT_EQ(dist.prob(token), expected.prob(token)) << "node " << node;
      }
    }
  }
  decoder.end(stream);
}

// Eight texts with a common beginning and different ends, drafted together, twice: the second time
// they continue kept texts.
TEST(AssistantDrafts, GoTogetherAndBehindKeptTexts) {
  const GoldenAssistant golden("whole");
  const test::TemporaryDirectory directory;
  write_target(golden, directory.path() / "target");
  const auto target = Model::load(directory.path() / "target", {.threads = 2});
  std::vector<std::vector<TokenId>> prompts;
  std::vector<GenerateResult> plain;
  for (int i = 0; i < 8; ++i) {
    std::vector<TokenId> prompt = golden.text();
    prompt.resize(static_cast<std::size_t>(60 + 11 * i));
    if (i % 2 == 1) prompt.push_back(i + 3);
    plain.push_back(draft_text(target, prompt, 0, {}));
    prompts.push_back(std::move(prompt));
  }
  const std::vector<std::string> drafters = {spec_of(golden)};
  Batch batch(target, drafters, {.threads = 2},
              {.max_running = 8, .prompt_rows = 30, .max_kept = 4});
  std::int64_t n_reused = 0;
  for (const bool again : {false, true}) {
    std::vector<GenerateResult> results(prompts.size());
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      const GenerateRequest request = {
          .prompt = prompts[i],
          .options = {.max_tokens = 60, .ignore_eos = true, .keep_logits = true}};
      batch.submit(request,
                   {.drafter = i == 5 ? "none" : spec_of(golden),
                    .tree = i % 3 == 0 ? "chain:length=4" : "widths:3,2,1"},
                   [&results, i](GenerateResult result, std::exception_ptr error) {
                     if (error) std::rethrow_exception(error);
                     results[i] = std::move(result);
                   });
    }
    while (batch.step()) {
    }
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      SCOPED_TRACE(i);
      EXPECT_EQ(results[i].ids, plain[i].ids);
      EXPECT_EQ(results[i].logits, plain[i].logits);
      if (i != 5) {
        EXPECT_GT(results[i].statistics.drafted, 0);
      }
      if (again) n_reused += results[i].statistics.reused;
    }
  }
  EXPECT_GT(n_reused, 0);
}

// The assistant's window is longer than the target's. If a kept text is rewound to the first place
// that the target's window allows, some of the assistant's keys are gone, and the first round
// drafts nothing.
TEST(AssistantDrafts, DraftNothingWhereKeysOfTheirWindowAreGone) {
  const GoldenAssistant golden("ordered");
  const test::TemporaryDirectory directory;
  write_target(golden, directory.path() / "target");
  const auto target = Model::load(directory.path() / "target", {.threads = 1});
  constexpr int kWindow = 16;  // as in its config.json
  std::vector<TokenId> first;
  for (int i = 0; i < 140; ++i) first.push_back(static_cast<TokenId>(2 + (i * 37 + i / 7) % 94));
  // The slots of the first text that are gone when it is kept: all but its window and what
  // rewinding by one page may need.
  const int n_gone = (140 + 40 - 63 - kWindow) / 64 * 64;
  ASSERT_GT(n_gone, 0);
  for (int n_common = n_gone + kWindow - 2; n_common <= n_gone + kWindow + 3; ++n_common) {
    SCOPED_TRACE(n_common);
    std::vector<TokenId> second(first.begin(), first.begin() + n_common);
    second.push_back(static_cast<TokenId>(2 + (first[second.size()] - 1) % 94));
    const GenerateResult plain = draft_text(target, second, 0, {});
    const std::vector<std::string> drafters = {spec_of(golden)};
    Batch batch(target, drafters, {.threads = 1}, {.max_kept = 2});
    GenerateResult drafted;
    const auto run = [&](const std::vector<TokenId>& prompt, int n_tokens) {
      batch.submit({.prompt = prompt,
                    .options = {.max_tokens = n_tokens, .ignore_eos = true, .keep_logits = true}},
                   {.drafter = spec_of(golden), .tree = "chain:length=4", .adaptive = false},
                   [&drafted](GenerateResult result, std::exception_ptr error) {
                     if (error) std::rethrow_exception(error);
                     drafted = std::move(result);
                   });
      while (batch.step()) {
      }
    };
    run(first, 40);
    run(second, static_cast<int>(plain.ids.size()));
    EXPECT_EQ(drafted.ids, plain.ids);
    EXPECT_EQ(drafted.logits, plain.logits);
    EXPECT_GT(drafted.statistics.drafted, 0);
    // One token is run again, to get the state after it.
    EXPECT_EQ(drafted.statistics.reused, n_common < n_gone + kWindow ? 0 : n_common - 1);
  }
}

// "auto" finds the assistant in a subfolder of the target and drafts with it.
TEST(AssistantDrafts, AreFoundByAuto) {
  const GoldenAssistant golden("ordered");
  const test::TemporaryDirectory directory;
  const fs::path path = directory.path() / "target";
  write_target(golden, path);
  EXPECT_EQ(own_parts(path).back(), "mtp:" + (path / "assistant").string());
  const auto target = Model::load(path, {.threads = 2});
  const GenerateResult plain = draft_text(target, golden.text(), 0, {});
  const GenerateResult drafted =
      draft_text(target, golden.text(), 0, {.drafter = "auto", .adaptive = false});
  EXPECT_EQ(drafted.ids, plain.ids);
  EXPECT_EQ(drafted.logits, plain.logits);
  EXPECT_GT(drafted.statistics.drafter_passes, 0);  // "suffix" runs no passes
}

}  // namespace
}  // namespace outrider
