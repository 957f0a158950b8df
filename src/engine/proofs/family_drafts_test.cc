// SPDX-License-Identifier: Apache-2.0
// Drafted texts of a target with recurrent layers (LFM2, Qwen3-Next, Qwen3.5, Granite 4), experts,
// latent attention, shared keys (Gemma 4) or an encoder have the bits of plain ones, for any
// drafter and draft shape. For recurrent targets this also holds in any batch, for texts that such
// a model drafts for another, and for texts that were preempted and run again.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/config.h"
#include "outrider/batch.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/nightly.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/proofs/drafted_text.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::draft_text;
using test::golden_directory;

std::string model_file(const char* name) {
  return (golden_directory(name) / "model.gguf").string();
}

// The bytes of lfm2_tied's file with a longer context.
std::string with_context(std::uint32_t n_tokens) {
  std::ifstream file(model_file("lfm2_tied"), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const std::string key = "lfm2.context_length";
  // After the key come its type, four bytes, and the number.
  std::memcpy(bytes.data() + bytes.find(key) + key.size() + 4, &n_tokens, sizeof n_tokens);
  return bytes;
}

struct Drafting {
  std::string drafter;
  std::string tree;
};

const std::vector<std::string> kModels = test::names(
    "lfm2_tied", "qwen3_next_plain", "qwen3_5_plain", "qwen3_5_moe_plain", "granite_hybrid_plain",
    "granite_hybrid_moe", "nemotron_h_plain", "nemotron_h_moe", "nemotron_h_latent",
    "qwen3_moe_plain", "gpt_oss_plain", "deepseek_v2_plain", "deepseek_v3_plain", "kimi_k2_plain",
    "glm4_moe_plain", "glm4_moe_lite_plain", "gemma4_shared", "gemma4_moe", "t5_plain");
constexpr const char* kWeights[] = {"f32", "bf16", "int8", "int4"};

// A model, and the format of its weights.
using Target = std::tuple<std::string, const char*>;

class FamilyDrafts : public ::testing::TestWithParam<Target> {};

TEST_P(FamilyDrafts, HaveTheBitsOfPlainTexts) {
  const auto& [name, weights] = GetParam();
  const test::GoldenModel golden(name);
  const ModelConfig config = read_config_json(golden.directory);
  test::TinyShape shape;  // as wide as the target
  shape.vocabulary_size = config.vocabulary_size;
  shape.dim = config.dim;
  shape.n_heads = 3;
  shape.n_kv_heads = 1;
  shape.head_dim = 8;
  shape.hidden_dim = 36;
  const test::TemporaryDirectory heads;
  test::write_eagle_head(shape, heads.path() / "eagle");
  const std::string itself = "model:" + model_file(name.c_str());
  std::vector<Drafting> drafters = {
      {itself + ",weights=int4", "widths:3,2,1"},
      {itself, "dynamic:total=25,depth=5,topk=5"},
      {"suffix", ""},
      {"suffix", "chain:length=5"},
      {"ngram", "chain:length=4"},
      {fmt::format("layerskip:layers={}", config.n_layers - 1), "chain:length=3"},
      {"layerskip:skip=1", "widths:3,2,1"},
      {"lookahead", ""},
      {"recycling", ""},
      {"staged:" + itself + "+suffix", "chain:length=4"},
      {"merge:suffix+" + itself, "widths:2,2"},
      {"eagle:" + (heads.path() / "eagle").string(), "widths:2,2"},
  };
  // A model drafter of another family; an encoder-decoder's drafter is an encoder-decoder as well.
  if (golden.encoder_ids.empty()) {
    drafters.push_back({"model:" + model_file("qwen3_tied"), "widths:4,2,2"});
  }
  for (int length = 1; length <= 8; ++length) {
    drafters.push_back({itself + ",weights=int4", fmt::format("chain:length={}", length)});
  }
  // By day a family has each drafter in one format of its weights, and every format has each
  // drafter with some family; in nightly runs all three.
  if (!test::nightly()) {
    const auto place = [](const auto& all, std::string_view one) {
      return std::find(std::begin(all), std::end(all), one) - std::begin(all);
    };
    const auto turn = static_cast<std::size_t>(place(kModels, name) + place(kWeights, weights));
    std::vector<Drafting> some;
    for (std::size_t i = turn % std::size(kWeights); i < drafters.size();
         i += std::size(kWeights)) {
      some.push_back(drafters[i]);
    }
    drafters = some;
  }
  const auto target =
      Model::load(golden.directory / "model.gguf", {.weights = weights, .threads = 2});
  for (const double temperature : {0.0, 1.0}) {
    const GenerateResult plain =
        draft_text(target, golden.ids, temperature, {}, golden.encoder_ids);
    if (temperature == 0 && std::string(weights) == "f32") {
      EXPECT_EQ(std::vector(plain.ids.begin(), plain.ids.begin() + 32), golden.greedy);
    }
    std::int64_t n_accepted = 0;
    std::int64_t n_drafted = 0;
    for (const auto& [drafter, tree] : drafters) {
      SCOPED_TRACE(drafter + " " + tree);
      const std::string verify = temperature == 0 ? "exact" : "coupled";
      const GenerateResult drafted =
          draft_text(target, golden.ids, temperature,
                     {.drafter = drafter, .tree = tree, .verify = verify, .adaptive = false},
                     golden.encoder_ids);
      EXPECT_EQ(drafted.ids, plain.ids);
      EXPECT_EQ(drafted.logits, plain.logits);
      n_accepted += drafted.statistics.accepted;
      n_drafted += drafted.statistics.drafted;
    }
    EXPECT_GT(n_accepted, 0);
    EXPECT_GT(n_drafted, n_accepted);
  }
}

INSTANTIATE_TEST_SUITE_P(All, FamilyDrafts,
                         ::testing::Combine(::testing::ValuesIn(kModels),
                                            ::testing::ValuesIn(kWeights)),
                         [](const auto& info) {
                           return fmt::format("{}_{}", std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

class RecurrentModel : public ::testing::TestWithParam<const char*> {};

TEST_P(RecurrentModel, DraftsForAnotherModel) {
  const test::GoldenModel golden("qwen3_tied");
  const auto target = Model::load(golden.directory / "model.gguf", {.threads = 1});
  const GenerateResult plain = draft_text(target, golden.ids, 0, {});
  for (const char* tree : {"chain:length=4", "widths:3,2,2"}) {
    const GenerateResult drafted =
        draft_text(target, golden.ids, 0,
                   {.drafter = "model:" + model_file(GetParam()), .tree = tree, .adaptive = false});
    EXPECT_GT(drafted.statistics.drafted, 0);
    EXPECT_EQ(drafted.ids, plain.ids);
    EXPECT_EQ(drafted.logits, plain.logits);
  }
}

// The drafter's memory holds a long text and its passes, but not the inputs of all its tokens at
// once.
TEST(RecurrentDrafter, DraftsBehindALongPromptInBoundedMemory) {
  const test::GoldenModel golden("lfm2_tied");
  const test::TemporaryDirectory directory;
  const std::string path = (directory.path() / "long.gguf").string();
  std::ofstream(path, std::ios::binary) << with_context(1024);
  const auto target = Model::load(path, {.threads = 1});
  const ModelSummary& summary = target->summary();
  std::vector<TokenId> prompt;
  for (std::size_t i = 0; i < 900; ++i) prompt.push_back(golden.ids[i % golden.ids.size()]);
  const auto n_bytes =
      static_cast<std::uint64_t>(1024 * summary.kv_bytes_per_token + 2 * summary.state_bytes +
                                 600 * summary.state_bytes_per_node);
  SpeculationOptions speculation{
      .drafter = "model:" + path, .tree = "chain:length=4", .adaptive = false};
  speculation.drafter_options.kv_memory_bytes = n_bytes;
  const GenerateResult drafted = draft_text(target, prompt, 0, speculation);
  EXPECT_GT(drafted.statistics.drafted, 0);
  EXPECT_EQ(drafted.ids, draft_text(target, prompt, 0, {}).ids);
}

// Eight texts with a common beginning, in a batch whose memory holds a few of them: later ones
// reuse what earlier ones have run, and some are preempted.
TEST_P(RecurrentModel, TextsOfABatchShareAndGiveWay) {
  const test::GoldenModel golden(GetParam());
  const auto target = Model::load(golden.directory / "model.gguf", {.threads = 1});
  const ModelSummary& summary = target->summary();
  const auto page_bytes = static_cast<std::uint64_t>(64 * summary.kv_bytes_per_token);
  const auto state_bytes =
      static_cast<std::uint64_t>(summary.state_bytes + 8 * summary.state_bytes_per_node);
  EXPECT_GT(summary.state_bytes, 0);
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 8; ++i) {
    std::vector<TokenId> prompt = golden.ids;
    prompt.insert(prompt.end(), golden.ids.begin(), golden.ids.end());
    prompt.resize(static_cast<std::size_t>(70 + 7 * i));
    prompt.push_back(i + 3);
    prompts.push_back(std::move(prompt));
  }
  std::vector<GenerateResult> plain;
  for (const auto& prompt : prompts) plain.push_back(draft_text(target, prompt, 0, {}));
  for (const std::uint64_t n_texts : {0U, 2U, 3U}) {
    SCOPED_TRACE(n_texts);
    const auto bounded = Model::load(
        golden.directory / "model.gguf",
        {.kv_memory_bytes = n_texts * (4 * page_bytes + 5 * state_bytes), .threads = 1});
    const std::vector<std::string> drafters = {"suffix", "model:" + model_file(GetParam())};
    Batch batch(bounded, drafters, {.threads = 1},
                {.max_running = 8, .prompt_rows = 30, .max_kept = 4});
    for (const bool again : {false, true}) {
      std::vector<GenerateResult> results(prompts.size());
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        const GenerateRequest request = {
            .prompt = prompts[i],
            .options = {.max_tokens = 60, .ignore_eos = true, .keep_logits = true}};
        batch.submit(request,
                     {.drafter = i % 3 == 2 ? "none" : drafters[i % 3],
                      .tree = i % 2 == 0 ? "chain:length=4" : ""},
                     [&results, i](GenerateResult result, std::exception_ptr error) {
                       if (error) std::rethrow_exception(error);
                       results[i] = std::move(result);
                     });
      }
      while (batch.step()) {
      }
      std::int64_t n_reused = 0;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        EXPECT_EQ(results[i].ids, plain[i].ids) << i;
        EXPECT_EQ(results[i].logits, plain[i].logits) << i;
        n_reused += results[i].statistics.reused;
      }
      if (again && n_texts == 0) {
        EXPECT_GT(n_reused, 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentModel,
                         ::testing::Values("lfm2_tied", "qwen3_5_plain", "granite_hybrid_plain",
                                           "nemotron_h_plain"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
