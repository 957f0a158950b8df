// SPDX-License-Identifier: Apache-2.0
// Promise 1 by enumeration, for layer blocks that Llama lacks: tiny models of families with the
// block (tests/golden), in files, with a prompt on which the block acts. The output follows the
// target's own distribution to 1e-12, whatever drafts. Then the block is changed a little, and the
// same enumeration must notice. By day any two of drafter, tree, verification, sampling and rule
// are combined; in nightly runs all.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/drafting/make_tree_shape.h"
#include "speculate/registry/drafter_registry.h"
#include "speculate/rules/make_rule.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/pairs_of_the_day.h"
#include "tests/support/proofs/drafter_proof.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/proofs/exactness.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::kCaught;
using test::kExact;
using test::prove;
using test::Proven;
using test::StoredModel;
using test::World;

struct BlockWorld {
  const char* block;
  const char* golden;
  // Tokens of the golden prompt. The block's effect differs among the drafted tokens: a window or
  // an original context ends before or within them.
  std::size_t n_prompt;
  // Changes of config.json (JSON merge patches, RFC 7386) that an enumeration must notice.
  std::vector<const char*> mutants;
};

const std::vector<BlockWorld> kWorlds = {
    {"Window", "mistral_window", 24, {R"({"sliding_window": 19})", R"({"sliding_window": 21})"}},
    {"SoftCap",
     "gemma2_capped",
     18,
     {R"({"attn_logit_softcapping": null})", R"({"final_logit_softcapping": null})",
      R"({"sliding_window": 15, "sliding_window_size": 15})"}},
    {"ParallelResidual", "gpt_neox_parallel", 12, {R"({"use_parallel_residual": false})"}},
    {"QueryScale",
     "ministral3_tied",
     20,
     {R"({"rope_parameters": {"llama_4_scaling_beta": 0}})",
      R"({"rope_parameters": {"llama_4_scaling_beta": 0.4}})"}},
    // Drafts cross a page boundary, where states are kept. No key changes only the convolution, so
    // its input's norm is changed.
    {"ShortConvolution", "lfm2_tied", 62, {R"({"norm_eps": 0.05, "block_norm_eps": 0.05})"}},
    {"DeltaNet", "qwen3_5_plain", 62, {R"({"rms_norm_eps": 0.05})"}},
    {"Experts",
     "qwen3_moe_plain",
     12,
     {R"({"num_experts_per_tok": 1})", R"({"norm_topk_prob": false})"}},
    {"Sinks", "gpt_oss_plain", 24, {R"({"sliding_window": 19})", R"({"swiglu_limit": 2})"}},
    // Another original context changes RoPE's scaled angles.
    {"Latent",
     "deepseek_v3_plain",
     12,
     {R"({"routed_scaling_factor": 1})", R"({"topk_group": 4})",
      R"({"rope_scaling": {"original_max_position_embeddings": 16}})"}},
    {"Mamba", "granite_hybrid_plain", 62, {R"({"time_step_limit": [0, 0.2]})"}},
    // Experts without a gate that read a narrower row, after Mamba-2.
    {"NarrowExperts", "nemotron_h_latent", 62, {R"({"num_experts_per_tok": 1})"}},
    // An encoder, and biases by distance; another last distance moves the buckets.
    {"CrossAttention",
     "t5_plain",
     24,
     {R"({"relative_attention_max_distance": 24})", R"({"scale_decoder_outputs": true})"}},
};

// The drafters: the target's weights in four bits, which are often right; its first layer; and a
// head with random predictions.
std::vector<std::string> drafters(const fs::path& target, const ModelConfig& config,
                                  const fs::path& head) {
  test::write_eagle_head({.vocabulary_size = config.vocabulary_size,
                          .context_length = config.context_length,
                          .n_layers = 1,
                          .dim = config.dim,
                          .n_heads = 2,
                          .n_kv_heads = 1,
                          .head_dim = 8,
                          .hidden_dim = 32,
                          .rope = {}},
                         head);
  return {"model:" + target.string() + ",weights=int4", "layerskip:layers=1",
          "eagle:" + head.string()};
}

// Logits are a few units large: at a low temperature one token would have all probability.
const SamplingParams kFewOutcomes[] = {
    {.temperature = 3, .top_k = 3},
    {.temperature = 2, .top_k = 2, .repetition_penalty = 1.5, .frequency_penalty = 0.3},
    {.temperature = 0}};

World world_of(const BlockWorld& block) {
  const test::GoldenModel golden(block.golden);
  World world;
  world.encoder_tokens = golden.encoder_ids;
  world.target = std::make_unique<StoredModel>(golden.directory, golden.encoder_ids);
  world.materials.target = world.target.get();
  world.materials.target_path = golden.directory;
  world.materials.vocabulary_size = world.target->config().vocabulary_size;
  world.materials.load = {.n_threads = 1};
  world.materials.load_model = [](const fs::path& path, const LoadOptions& as) {
    return load_model(path, as);
  };
  world.prompt.assign(golden.ids.begin(),
                      golden.ids.begin() + static_cast<std::ptrdiff_t>(block.n_prompt));
  world.few_outcomes.assign(std::begin(kFewOutcomes), std::end(kFewOutcomes));
  return world;
}

// What an enumeration combines; `sampling` is a place in kFewOutcomes.
struct Cell {
  std::string world = {};
  std::string drafter = {};
  std::string tree = {};
  std::string verify = {};
  std::string rule = {};
  std::size_t sampling = 0;
};

// Of all, any two of their values; in nightly runs all.
std::vector<Cell> of_the_day(const std::vector<Cell>& all) {
  return test::pairs_of_the_day(all, [](const Cell& cell) {
    return test::CaseValues{cell.world,  cell.drafter, cell.tree,
                            cell.verify, cell.rule,    std::to_string(cell.sampling)};
  });
}

Proven prove_in(World& world, const std::string& drafter, const std::string& tree,
                const std::string& verify, const SamplingParams& sampling,
                const std::string& rule_spec = "exact") {
  const auto drafting = read_drafter(drafter).make(world.materials);
  const auto rule = make_rule(rule_spec);
  const Verification verification = make_verification(rule_spec, verify);
  return prove({.world = &world,
                .drafter = drafting.get(),
                .acceptance = verification.acceptance.get(),
                .rule = rule.get(),
                .shape = make_tree_shape(tree),
                .sampling = sampling});
}

class BlockExactness : public ::testing::TestWithParam<BlockWorld> {};

TEST_P(BlockExactness, HoldsForEveryDrafterTreeAndVerification) {
  World world = world_of(GetParam());
  const test::TemporaryDirectory head;
  std::vector<Cell> all;
  std::map<std::string, std::int64_t> n_drafted;
  for (const std::string& drafter :
       drafters(world.materials.target_path, world.target->config(), head.path())) {
    n_drafted[drafter] = 0;
    for (const char* tree : {"chain:length=2", "widths:2,1"}) {
      for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
        if (verify == std::string("block") && tree != std::string("chain:length=2")) continue;
        for (std::size_t sampling = 0; sampling < std::size(kFewOutcomes); ++sampling) {
          all.push_back({.drafter = drafter, .tree = tree, .verify = verify, .sampling = sampling});
        }
      }
    }
  }
  for (const Cell& cell : of_the_day(all)) {
    const SamplingParams& sampling = kFewOutcomes[cell.sampling];
    const Proven proven = prove_in(world, cell.drafter, cell.tree, cell.verify, sampling);
    SCOPED_TRACE(cell.drafter + ", " + cell.tree + ", " + cell.verify);
    EXPECT_NEAR(proven.weight, 1, kExact);
    EXPECT_LT(proven.error, kExact) << "temperature " << sampling.temperature;
    EXPECT_EQ(proven.violation, "");
    n_drafted[cell.drafter] += proven.n_drafted;
  }
  for (const auto& [drafter, n] : n_drafted) EXPECT_GT(n, 0) << drafter;
}

// Rules read two models' distributions, and here both models have the block.
class BlockRuleExactness : public ::testing::TestWithParam<const char*> {};

constexpr const char* kRuleWorlds[] = {"ShortConvolution", "DeltaNet", "Experts",       "Sinks",
                                       "Latent",           "Mamba",    "CrossAttention"};

// Of all these worlds together: a rule has every world, every verification and every sampling.
const std::vector<Cell>& rule_cells() {
  static const std::vector<Cell> kCells = [] {
    std::vector<Cell> all;
    for (const char* world : kRuleWorlds) {
      for (const char* rule :
           {"chow:alpha=0.4", "diff:alpha=0.1", "opt:alpha=0.3", "token-v1:alpha=0.3",
            "token-v2:alpha=0.2", "token-v3:alpha=0.5", "lossy:alpha=0.3", "lenience:eps=0.6",
            "budget:kl=0.1,total=0.15", "bild-sampled:alpha=0.3,distance=tv"}) {
        for (const char* verify : {"exact", "block", "traversal", "coupled"}) {
          for (std::size_t sampling = 0; sampling < std::size(kFewOutcomes); ++sampling) {
            all.push_back({.world = world, .verify = verify, .rule = rule, .sampling = sampling});
          }
        }
      }
    }
    return of_the_day(all);
  }();
  return kCells;
}

TEST_P(BlockRuleExactness, HoldsForEveryVerification) {
  const auto at = std::find_if(kWorlds.begin(), kWorlds.end(), [](const BlockWorld& world) {
    return std::string(world.block) == GetParam();
  });
  ASSERT_NE(at, kWorlds.end());
  World world = world_of(*at);
  const std::string drafter = "model:" + world.materials.target_path.string() + ",weights=int4";
  int n_cells = 0;
  for (const Cell& cell : rule_cells()) {
    if (cell.world != GetParam()) continue;
    const std::string tree = cell.verify == "block" ? "chain:length=2" : "widths:2,1";
    const SamplingParams& sampling = kFewOutcomes[cell.sampling];
    const Proven proven = prove_in(world, drafter, tree, cell.verify, sampling, cell.rule);
    SCOPED_TRACE(cell.rule + ", " + cell.verify);
    EXPECT_NEAR(proven.weight, 1, kExact);
    EXPECT_LT(proven.error, kExact) << "temperature " << sampling.temperature;
    EXPECT_EQ(proven.violation, "");
    EXPECT_GT(proven.n_drafted, 0);
    ++n_cells;
  }
  EXPECT_GE(n_cells, 10);  // every rule
}

// A target whose passes are those of another model than its logits are compared with.
class Impostor final : public test::PrefixModel {
 public:
  Impostor(const fs::path& right, const fs::path& runs, const std::vector<TokenId>& encoder_tokens)
      : right_(right, encoder_tokens), runs_(runs) {}
  const ModelConfig& config() const override { return runs_.config(); }
  Footprint footprint() const override { return runs_.footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return runs_.open(prompt); }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    runs_.forward(blocks, request, output);
  }
  const std::vector<float>& logits(const std::vector<TokenId>& prefix) override {
    return right_.logits(prefix);
  }

 private:
  StoredModel right_;
  StoredModel runs_;
};

double largest_error(World& world, const fs::path& right, const fs::path& runs) {
  world.target = std::make_unique<Impostor>(right, runs, world.encoder_tokens);
  world.materials.target = world.target.get();
  const std::string drafter = "model:" + world.materials.target_path.string() + ",weights=int4";
  double largest = 0;
  for (const SamplingParams& sampling : world.few_outcomes) {
    largest =
        std::max(largest, prove_in(world, drafter, "chain:length=2", "exact", sampling).error);
  }
  return largest;
}

TEST_P(BlockExactness, NoticesTheBlockChanged) {
  const fs::path golden = test::golden_directory(GetParam().golden);
  World world = world_of(GetParam());
  EXPECT_LT(largest_error(world, golden, golden), kExact);
  for (const char* mutant : GetParam().mutants) {
    const test::TemporaryDirectory changed;
    fs::copy(golden, changed.path(), fs::copy_options::recursive);
    json config = test::json_of(changed.path() / "config.json");
    config.merge_patch(json::parse(mutant));
    std::ofstream(changed.path() / "config.json") << config.dump();
    EXPECT_GT(largest_error(world, golden, changed.path()), kCaught) << mutant;
  }
}

// The same passes, with the encoder output of another text.
TEST(BlockExactnessOfEncoders, NoticesWhatAnotherEncoderRead) {
  const auto& block = kWorlds.back();
  ASSERT_STREQ(block.golden, "t5_plain");
  World world = world_of(block);
  const fs::path golden = test::golden_directory(block.golden);
  EXPECT_LT(largest_error(world, golden, golden), kExact);
  std::vector<TokenId> other = world.encoder_tokens;
  std::reverse(other.begin(), other.end());
  world.target = std::make_unique<StoredModel>(golden, other);
  world.materials.target = world.target.get();
  const std::string drafter = "model:" + golden.string() + ",weights=int4";
  EXPECT_GT(prove_in(world, drafter, "chain:length=2", "exact", world.few_outcomes[0]).error,
            kCaught);
}

INSTANTIATE_TEST_SUITE_P(, BlockRuleExactness, ::testing::ValuesIn(kRuleWorlds),
                         [](const auto& info) { return std::string(info.param); });
INSTANTIATE_TEST_SUITE_P(, BlockExactness, ::testing::ValuesIn(kWorlds),
                         [](const auto& info) { return std::string(info.param.block); });

}  // namespace
}  // namespace outrider
