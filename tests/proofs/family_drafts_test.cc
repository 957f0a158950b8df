// SPDX-License-Identifier: Apache-2.0
// One model of each family. Drafters change no id and no logit; in f32 the ids equal those of
// transformers (tests/golden/make/make_family_models.py); quantised weights give the same bits on
// every kernel table.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/chain_model.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

bool same_bits(const std::vector<float>& left, const std::vector<float>& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

// The golden model and a tokenizer: three tokens that end or pad a text, and printable characters.
class FamilyDrafts : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const test::GoldenModel golden(GetParam());
    fs::copy(golden.directory, directory_.path(), fs::copy_options::recursive);
    const std::size_t n_tokens = golden.logits.front().size();
    test::ChainVocabulary vocabulary{.pieces = {"<pad>", "<bos>", "<eos>"},
                                     .added = {{"<pad>", true}, {"<bos>", true}, {"<eos>", true}}};
    while (vocabulary.pieces.size() < n_tokens) {
      vocabulary.pieces.emplace_back(1, static_cast<char>('!' + vocabulary.pieces.size() - 3));
    }
    test::write_json(test::tokenizer_of(vocabulary), directory_.path() / "tokenizer.json");
    prompt_ = golden.ids;
    greedy_ = golden.greedy;
  }

  std::shared_ptr<const Model> load(const char* weights, const std::string& kernels = {}) const {
    return Model::load(directory_.path(), {.weights = weights, .threads = 2, .kernels = kernels});
  }
  GenerateResult run(const std::shared_ptr<const Model>& model,
                     const SpeculationOptions& speculation) const {
    Generator generator(model, speculation);
    const GenerateRequest request{
        prompt_,
        {.max_tokens = static_cast<int>(greedy_.size()), .ignore_eos = true, .keep_logits = true}};
    return std::move(generator.generate({&request, 1}).front());
  }

  test::TemporaryDirectory directory_;
  std::vector<TokenId> prompt_;
  std::vector<TokenId> greedy_;
};

TEST_P(FamilyDrafts, ChangeNoIdAndNoLogit) {
  const auto target = load("f32");
  const GenerateResult plain = run(target, {});
  EXPECT_EQ(plain.ids, greedy_);

  // A head with this target's hidden states and tokens; its drafts are meaningless.
  const test::TemporaryDirectory head;
  test::write_eagle_head({.vocabulary_size = target->summary().vocabulary_size,
                          .context_length = 256,
                          .n_layers = 1,
                          .dim = target->summary().dim,
                          .n_heads = 2,
                          .n_kv_heads = 1,
                          .head_dim = 8,
                          .hidden_dim = 32,
                          .rope = {}},
                         head.path());
  const std::string itself = "model:" + directory_.path().string();
  const std::string as_pard = "pard:" + directory_.path().string();
  constexpr const char* kTree = "dynamic:total=25,depth=5,topk=4";
  for (const auto& [drafter, tree, is_right] : {
           std::tuple{itself + ",weights=f32", "chain:length=4", true},
           std::tuple{itself + ",weights=f32", kTree, true},
           std::tuple{itself + ",weights=int4", kTree, false},
           // "<pad>" as an untrained mask token: the first token of a draft is accepted.
           std::tuple{as_pard + ",weights=f32,mask=0", "chain:length=4", false},
           std::tuple{as_pard + ",weights=f32,mask=0", kTree, false},
           std::tuple{std::string("suffix"), "", false},
           std::tuple{std::string("layerskip:layers=1"), "chain:length=3", false},
           std::tuple{std::string("layerskip:skip=0"), "chain:length=3", false},
           std::tuple{"eagle:" + head.path().string(), "chain:length=4", false},
           std::tuple{"eagle:" + head.path().string(), kTree, false},
       }) {
    SCOPED_TRACE(drafter + " " + tree);
    const GenerateResult drafted = run(target, {.drafter = drafter, .tree = tree});
    EXPECT_EQ(drafted.ids, plain.ids);
    EXPECT_TRUE(same_bits(drafted.logits, plain.logits));
    EXPECT_GT(drafted.statistics.drafted, 0);
    // The target's own tokens are accepted; only the end of the text cuts a draft short.
    if (is_right) {
      EXPECT_GT(drafted.statistics.accepted, drafted.statistics.rejected * 10);
    }
  }
}

// Texts of different lengths in one batch, sampled at temperature 1: each equals the same text run
// alone. With phi3_crossing they outgrow the original context in different rounds, and one begins
// beyond it.
TEST_P(FamilyDrafts, TextsTogetherAreThoseAlone) {
  const auto target = load("f32");
  std::vector<GenerateRequest> requests;
  for (const int n_more : {-14, 0, -5, 30}) {
    GenerateRequest request{prompt_,
                            {.max_tokens = 32,
                             .sampling = {.temperature = 1},
                             .seed = static_cast<std::uint64_t>(20 + n_more),
                             .ignore_eos = true,
                             .keep_logits = true}};
    if (n_more < 0) request.prompt.resize(prompt_.size() - static_cast<std::size_t>(-n_more));
    for (int i = 0; i < n_more && request.prompt.size() < 96; ++i) {
      request.prompt.push_back(greedy_[static_cast<std::size_t>(i)]);
    }
    if (request.prompt.size() + 32 > static_cast<std::size_t>(target->summary().context_length)) {
      continue;
    }
    requests.push_back(std::move(request));
  }
  ASSERT_GE(requests.size(), 2u);
  const SpeculationOptions speculation{
      .drafter = "model:" + directory_.path().string() + ",weights=int4",
      .tree = "chain:length=3",
      .verify = "coupled"};
  Generator plain(target);
  Generator drafting(target, speculation);
  const std::vector<GenerateResult> together = drafting.generate(requests);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SCOPED_TRACE(i);
    const GenerateResult alone = std::move(plain.generate({&requests[i], 1}).front());
    EXPECT_EQ(together[i].ids, alone.ids);
    EXPECT_TRUE(same_bits(together[i].logits, alone.logits));
    EXPECT_GT(together[i].statistics.drafted, 0);
  }
}

TEST_P(FamilyDrafts, QuantisedWeightsHaveTheSameBitsOnEveryTable) {
  for (const char* weights : {"int8", "int4"}) {
    const GenerateResult expected = run(load(weights, "scalar"), {});
    for (const auto& [table, runs] : kernel_tables()) {
      if (!runs) continue;
      SCOPED_TRACE(std::string(weights) + " " + table);
      const auto target = load(weights, table);
      for (const char* drafter : {"none", "suffix"}) {
        const GenerateResult result = run(target, {.drafter = drafter});
        EXPECT_EQ(result.ids, expected.ids) << drafter;
        EXPECT_TRUE(same_bits(result.logits, expected.logits)) << drafter;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FamilyDrafts,
                         ::testing::Values("llama_plain", "qwen2_tied", "qwen3_untied",
                                           "gemma3_one_in_three", "mistral_window",
                                           "smollm3_window", "olmo2_grouped", "granite_biased",
                                           "phi3_crossing", "phi3_window", "gemma2_capped",
                                           "gpt2_odd", "gpt_neox_parallel", "gpt_neox_sequential",
                                           "ministral3_tied", "mixtral_window", "qwen3_moe_mixed",
                                           "olmoe_grouped", "gpt_oss_plain", "gpt_oss_mxfp4"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
