// SPDX-License-Identifier: Apache-2.0
// Drafters with heads: their drafts against a program written from the papers' equations
// (tests/golden/make/make_drafts_golden.py), and files that are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/goldens/golden_drafts.h"
#include "tests/support/models/head_files.h"
#include "tests/support/models/tiny_heads.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::expect_golden_drafts;
using test::expect_refused;
using test::golden_drafts;
using test::golden_shape;
using test::TinyShape;

using HeadDrafters = test::HeadFiles;

TEST_F(HeadDrafters, EagleDraftsAsTheGoldenProgram) {
  for (const auto& [inputs, expected] : golden_drafts().at("eagle").items()) {
    SCOPED_TRACE(inputs);
    test::write_eagle_head(golden_shape(), head_path(), inputs);
    expect_golden_drafts(*target_, *make_of("eagle"), expected);
  }
  // Public files do not state the head's inputs.
  test::write_eagle_head(golden_shape(), head_path());
  expect_golden_drafts(*target_, *make_of("eagle"),
                       golden_drafts().at("eagle").at("feature+shifted-token"));
}

TEST_F(HeadDrafters, Eagle3DraftsAsTheGoldenProgram) {
  test::write_eagle3_head(golden_shape(), {}, head_path());
  expect_golden_drafts(*target_, *make_of("eagle"), golden_drafts().at("eagle3").at("whole"));
  const auto vocabulary = golden_drafts().at("draft_vocabulary").get<std::vector<TokenId>>();
  test::write_eagle3_head(golden_shape(), vocabulary, head_path());
  expect_golden_drafts(*target_, *make_of("eagle"), golden_drafts().at("eagle3").at("reduced"));
}

// If the file has its own embedding, it counts instead of the target's.
TEST_F(HeadDrafters, EagleReadsItsOwnEmbedding) {
  test::write_eagle_head(golden_shape(), head_path(), {}, /*own_embedding=*/true);
  expect_golden_drafts(*target_, *make_of("eagle"), golden_drafts().at("eagle_own_embedding"));
}

// The forms of public EAGLE-3 heads (eagle_config.h). The target has three layers.
const std::map<std::string, test::Eagle3Form>& eagle3_forms() {
  static const std::map<std::string, test::Eagle3Form> forms = {
      {"authors", {.config = R"({})"}},
      {"specforge",
       {.config = R"({"norm_before_residual": true, "draft_vocab_size": 23, "eagle_config":
            {"eagle_aux_hidden_state_layer_ids": [0, 1], "use_aux_hidden_state": true,
             "use_last_layernorm": true, "use_mtp_layernorm": false, "parallel_draft_step": 1}})",
        .n_features = 2}},
      {"deepspec",
       {.config = R"({"target_layer_ids": [0, 1, 0, 1], "fc_norm": true})",
        .n_features = 4,
        .fc_norm = true}},
      {"speculators",
       {.config = R"({"speculators_model_type": "eagle3", "draft_vocab_size": 23,
            "norm_before_residual": true, "norm_before_fc": true, "norm_output": true,
            "eagle_aux_hidden_state_layer_ids": [0, 2, 1], "target_hidden_size": null,
            "speculators_config": {"algorithm": "eagle3"}})",
        .prefix = "layers.0.",
        .speculators = true,
        .own_embedding = true,
        .input_norm = true}}};
  return forms;
}

TEST_F(HeadDrafters, Eagle3FormsOfOthersDraftAsTheGoldenProgram) {
  const auto& golden = golden_drafts().at("eagle3_forms");
  ASSERT_EQ(eagle3_forms().size(), golden.size());
  for (const auto& [name, form] : eagle3_forms()) {
    SCOPED_TRACE(name);
    test::write_eagle3_form(golden_shape(), form, head_path());
    expect_golden_drafts(*target_, *make_of("eagle"), golden.at(name));
  }
}

TEST_F(HeadDrafters, Eagle3RefusesWhatItDoesNotRead) {
  const auto refused = [&](const std::string& config, bool speculators = false) {
    test::Eagle3Form form = eagle3_forms().at(speculators ? "speculators" : "authors");
    form.config = config;
    test::write_eagle3_form(golden_shape(), form, head_path());
    return refusal_of("eagle");
  };
  // Layers that the target lacks, in every key that lists them; and the output of its last layer,
  // which is normalised before it leaves the pass.
  expect_refused(refused(R"({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [97, 98, 99]}})"),
                 "eagle_config.eagle_aux_hidden_state_layer_ids to be layers 0 to 1 of a target of "
                 "3, got [97,98,99]");
  expect_refused(refused(R"({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [0, 1, 2]}})"),
                 "layers 0 to 1 of");
  expect_refused(refused(R"({"eagle_aux_hidden_state_layer_ids": [0, 1, 3]})"), "layers 0 to 2 of");
  expect_refused(refused(R"({"target_layer_ids": [0, 1, 2]})"), "target_layer_ids to be layers 0");
  expect_refused(refused(R"({"target_layer_ids": [0, -1, 1]})"), "target_layer_ids to be layers 0");
  expect_refused(refused(R"({"target_layer_ids": "all"})"), "target_layer_ids to be layers 0");
  std::string many = "[0";
  for (int i = 0; i < 64; ++i) many += ", 0";
  expect_refused(refused(R"({"target_layer_ids": )" + many + "]}"), "64 layers at most, got 65");
  // Two hidden states where fc reads three.
  expect_refused(refused(R"({"target_layer_ids": [0, 1]})"), "fc.weight");
  // Other heads, and unknown keys.
  expect_refused(refused(R"({"eagle_config": {"use_aux_hidden_state": false}})"),
                 "eagle_config.use_aux_hidden_state to be true, got false");
  expect_refused(refused(R"({"eagle_config": {"use_mtp_layernorm": true}})"),
                 "use_mtp_layernorm to be false, got true");
  expect_refused(refused(R"({"eagle_config": {"parallel_draft_step": 4}})"),
                 "parallel_draft_step to be 1, got 4");
  expect_refused(refused(R"({"eagle_config": {"logit_gate": 0.5}})"), "eagle_config.logit_gate");
  expect_refused(refused(R"({"logit_scale": 0.5})"), "logit_scale");
  expect_refused(refused(R"({"target_hidden_size": 16})"), "target_hidden_size to be 8, got 16");
  expect_refused(refused(R"({"norm_before_fc": true})"), "input_norm.weight");
  expect_refused(refused(R"({"fc_norm": true})"), "fc_norm.0.weight");
  expect_refused(refused(R"({"speculators_model_type": "dflash"})", true),
                 "speculators_model_type to be eagle3 or peagle, got dflash");

  // Weights in a pickle.
  fs::rename(head_path() / "model.safetensors", head_path() / "pytorch_model.bin");
  test::write_eagle3_form(golden_shape(), eagle3_forms().at("authors"), head_path());
  fs::rename(head_path() / "model.safetensors", head_path() / "pytorch_model.bin");
  expect_refused(refusal_of("eagle"), "pytorch_model.bin (pickled weights are not read");
}

TEST_F(HeadDrafters, EagleRefusesWhatDoesNotFit) {
  EXPECT_NE(refusal_of("eagle").find("got nothing there"), std::string::npos);
  fs::create_directories(head_path());
  EXPECT_NE(refusal_of("eagle").find("got no config.json"), std::string::npos);

  test::write_medusa_heads(golden_shape(), 1, false, head_path());
  EXPECT_NE(refusal_of("eagle").find("got Medusa heads (medusa:"), std::string::npos);
  fs::remove_all(head_path());

  const auto refused = [&](const TinyShape& shape) {
    test::write_eagle_head(shape, head_path());
    return refusal_of("eagle");
  };
  EXPECT_EQ(refused(golden_shape()), "");
  TinyShape wide = golden_shape();
  wide.dim = 16;
  EXPECT_NE(refused(wide).find("expected the target's width of 8, got 16"), std::string::npos);
  TinyShape verbose = golden_shape();
  verbose.vocabulary_size = 24;
  EXPECT_NE(refused(verbose).find("expected the target's vocabulary of 23, got 24"),
            std::string::npos);
  test::write_eagle_head(golden_shape(), head_path(), "feature+token");
  EXPECT_NE(refusal_of("eagle").find("eagle_inputs"), std::string::npos);

  // A configuration of one head and the tensors of another.
  test::write_eagle_head(golden_shape(), directory_.path() / "other");
  test::write_eagle_head(wide, head_path());
  fs::copy_file(directory_.path() / "other" / "config.json", head_path() / "config.json",
                fs::copy_options::overwrite_existing);
  EXPECT_NE(refusal_of("eagle").find("expected tensor "), std::string::npos);
  // A model instead of a head.
  test::TinyShape one_layer = golden_shape();
  one_layer.n_layers = 1;
  fs::remove_all(head_path());
  test::write_hugging_face(test::make_tiny_model(one_layer), head_path());
  EXPECT_NE(refusal_of("eagle").find("a tensor layers.0.self_attn.q_proj.weight"),
            std::string::npos);
  test::write_hugging_face(test::golden_target(), head_path());
  EXPECT_NE(refusal_of("eagle").find("expected one layer, got 3"), std::string::npos);

  // Draft ids outside the vocabulary, or duplicate ones.
  for (const std::vector<TokenId>& vocabulary :
       {std::vector<TokenId>{0, 5, 23}, {0, 5, -1}, {4, 4}}) {
    test::write_eagle3_head(golden_shape(), vocabulary, head_path());
    EXPECT_NE(refusal_of("eagle").find("expected d2t to give"), std::string::npos);
  }
}

TEST_F(HeadDrafters, MedusaDraftsAsTheGoldenProgram) {
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own);
    fs::remove_all(head_path());
    test::write_medusa_heads(golden_shape(), 3, own, head_path());
    expect_golden_drafts(*target_, *make_of("medusa"),
                         golden_drafts().at("medusa").at(own ? "own" : "shared"));
  }
}

TEST_F(HeadDrafters, MedusaRefusesWhatDoesNotFit) {
  EXPECT_NE(refusal_of("medusa").find("got nothing there"), std::string::npos);
  fs::create_directories(head_path());
  EXPECT_NE(refusal_of("medusa").find("expected a directory with medusa_lm_head.safetensors"),
            std::string::npos);
  test::write_medusa_heads(golden_shape(), 0, true, head_path());
  EXPECT_NE(refusal_of("medusa").find("expected a tensor 0.0.linear.weight, got none"),
            std::string::npos);
  TinyShape wide = golden_shape();
  wide.dim = 16;
  test::write_medusa_heads(wide, 2, true, head_path());
  EXPECT_NE(refusal_of("medusa").find("tensor 0.0.linear.weight of shape (8, 8), got (16, 16)"),
            std::string::npos);
  TinyShape verbose = golden_shape();
  verbose.vocabulary_size = 24;
  test::write_medusa_heads(verbose, 2, true, head_path());
  EXPECT_NE(refusal_of("medusa").find("tensor 0.1.weight of shape (23, 8), got (24, 8)"),
            std::string::npos);
}

TEST_F(HeadDrafters, ModulesDraftAsTheGoldenProgram) {
  for (const int n_modules : {1, 2, 3}) {
    SCOPED_TRACE(n_modules);
    fs::remove_all(target_path());
    test::write_hugging_face(test::golden_target(), target_path());
    test::write_mtp_modules(golden_shape(), n_modules, target_path());
    expect_golden_drafts(*target_, *make("mtp"),
                         golden_drafts().at("mtp").at(std::to_string(n_modules)));
  }
}

TEST_F(HeadDrafters, ModulesMayStandInAFolderOfTheirOwn) {
  test::write_hugging_face(test::golden_target(), head_path());
  test::write_mtp_modules(golden_shape(), 2, head_path());
  expect_golden_drafts(*target_, *make_of("mtp"), golden_drafts().at("mtp").at("2"));
}

TEST_F(HeadDrafters, ModulesRefuseWhatDoesNotFit) {
  const auto refusal = [&](const std::string& spec = "mtp") {
    try {
      (void)make(spec);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal().find("num_nextn_predict_layers in config.json; modules in a folder of "),
            std::string::npos);
  TinyShape narrow = golden_shape();
  narrow.hidden_dim = 10;
  test::write_mtp_modules(narrow, 1, target_path());
  EXPECT_NE(refusal().find("tensor model.layers.3.mlp.gate_proj.weight of shape (12, 8)"),
            std::string::npos);
  EXPECT_NE(refusal("mtp:nowhere").find("nowhere: expected a Hugging Face directory with modules"),
            std::string::npos)
      << refusal("mtp:nowhere");
  EXPECT_THROW(make("mtp:x,y"), UsageError);
}

using Path = std::vector<TokenId>;

// The nodes of each round's draft, as paths of tokens, and the text before each round.
struct Drafts {
  std::vector<std::set<Path>> nodes;
  std::vector<std::vector<TokenId>> texts;
};

Drafts drafts_of(LanguageModel& target, Drafter& drafter, const std::vector<TokenId>& prompt,
                 int n_rounds) {
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(target, &drafter, *acceptance,
                  std::make_shared<FixedShape>(widths_tree(std::vector{3, 2})), nullptr);
  CounterChance chance(1);
  Stream stream(0, prompt, Transform({.temperature = 0}, target.config().vocabulary_size), chance);
  stream.max_total = target.config().context_length;
  decoder.begin(stream);
  Stream* const streams[] = {&stream};
  Drafts drafts;
  for (int round = 0; round < n_rounds && !stream.finished; ++round) {
    drafts.texts.push_back(stream.tokens);
    decoder.round(streams, [](Stream&, const Committed&) { return false; });
    std::set<Path>& nodes = drafts.nodes.emplace_back();
    for (int node = 1; node <= stream.tree.n_drafted(); ++node) {
      Path path;
      stream.tree.path_tokens(node, path);
      nodes.insert(path);
    }
  }
  return drafts;
}

// A head inside another drafter follows the text whichever part's draft was accepted, and reads its
// own layers among those that all parts request. It drafts the same as alone.
TEST_F(HeadDrafters, FollowTheTextAsPartsOfOthers) {
  const fs::path third = directory_.path() / "third";
  const fs::path medusa = directory_.path() / "medusa";
  const fs::path dflash = directory_.path() / "dflash";
  test::write_eagle_head(golden_shape(), head_path());
  test::write_eagle3_head(golden_shape(), {}, third);
  test::write_medusa_heads(golden_shape(), 2, true, medusa);
  test::write_dflash_head(golden_shape(), {}, dflash);
  const std::vector<std::string> parts = {"eagle:" + third.string(), "medusa:" + medusa.string(),
                                          "dflash:" + dflash.string(),
                                          "eagle:" + head_path().string()};
  const auto merged = make("merge:" + parts[0] + "+" + parts[1] + "+" + parts[2] + "+" + parts[3]);
  EXPECT_TRUE(merged->traits().reads_features);
  const Drafts drafts = drafts_of(*target_, *merged, {3, 1, 4}, 12);
  std::size_t n_rounds_with_acceptance = 0;
  for (std::size_t round = 0; round < drafts.texts.size(); ++round) {
    if (round > 0 && drafts.texts[round].size() > drafts.texts[round - 1].size() + 1) {
      ++n_rounds_with_acceptance;
    }
    std::set<Path> expected;
    for (const std::string& part : parts) {
      // The parts of a merged draft share its nodes: the draft holds the beginning of each part's.
      const Drafts alone = drafts_of(*target_, *make(part), drafts.texts[round], 1);
      expected.insert(alone.nodes.front().begin(), alone.nodes.front().end());
      bool has_its_first = false;
      for (const Path& path : alone.nodes.front()) {
        has_its_first |= path.size() == 1 && drafts.nodes[round].contains(path);
      }
      EXPECT_TRUE(has_its_first) << part << ", round " << round;
    }
    for (const Path& path : drafts.nodes[round]) {
      EXPECT_TRUE(expected.contains(path)) << "round " << round;
    }
  }
  EXPECT_GT(n_rounds_with_acceptance, 0U);
  EXPECT_THROW(make("staged:model:X+" + parts[0]), UsageError);
}

// The nodes of the first draft of a text that continues another one.
std::set<Path> first_draft_behind(LanguageModel& target, const std::shared_ptr<Drafter>& drafter,
                                  const std::vector<TokenId>& earlier,
                                  const std::vector<TokenId>& prompt, std::size_t n_behind,
                                  std::size_t n_reused) {
  const auto acceptance = make_multi_round(std::make_shared<ExactRule>());
  Decoder decoder(target, drafter.get(), *acceptance,
                  std::make_shared<FixedShape>(widths_tree(std::vector{3, 2})), nullptr);
  CounterChance chance(1);
  const Transform greedy({.temperature = 0}, target.config().vocabulary_size);
  Stream first(0, earlier, greedy, chance);
  first.max_total = target.config().context_length;
  decoder.begin(first);
  EXPECT_EQ(drafter->n_behind(first.context()), n_behind);
  const KeptText kept{.id = first.id,
                      .drafter = drafter,
                      .tokens = first.tokens,
                      .sequence = std::move(first.sequence)};
  Stream second(1, prompt, greedy, chance);
  second.max_total = target.config().context_length;
  decoder.begin_behind(second, kept);
  EXPECT_EQ(second.n_reused, static_cast<std::int64_t>(n_reused));
  Stream* const streams[] = {&second};
  decoder.round(streams, [](Stream&, const Committed&) { return false; });
  std::set<Path> nodes;
  for (int node = 1; node <= second.tree.n_drafted(); ++node) {
    Path path;
    second.tree.path_tokens(node, path);
    nodes.insert(path);
  }
  return nodes;
}

// A text that never drafts costs no pass of the head; its queued states serve texts that begin with
// it.
TEST_F(HeadDrafters, RunAPromptWhenTheyDraft) {
  constexpr int kModules = 2;
  test::write_mtp_modules(golden_shape(), kModules, target_path());
  test::write_eagle_head(golden_shape(), head_path());
  const std::vector<TokenId> earlier = {3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<TokenId> longer = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  const std::vector<TokenId> other = {3, 1, 4, 1, 5, 7, 2};
  const fs::path dflash = directory_.path() / "dflash";
  test::write_dflash_head(golden_shape(), {}, dflash);
  for (const std::string& spec :
       {"eagle:" + head_path().string(), std::string("mtp"), "dflash:" + dflash.string()}) {
    SCOPED_TRACE(spec);
    // Seven of the eight tokens have been run. A head's row reads tokens after its own. A block
    // head needs no row for the draft alone either.
    const bool is_block = spec.starts_with("dflash");
    const std::size_t n_ahead = is_block ? 0 : spec == "mtp" ? kModules : 1;
    const std::size_t n_of_other = 5 - n_ahead;
    const std::size_t n_of_longer = 7 - n_ahead;
    const auto drafted = [&](const std::vector<TokenId>& prompt) {
      return drafts_of(*target_, *make(spec), prompt, 1).nodes.front();
    };
    const auto behind = [&](const std::vector<TokenId>& prompt, std::size_t n_reused) {
      return first_draft_behind(*target_, make(spec), earlier, prompt, is_block ? 7 : 6, n_reused);
    };
    EXPECT_FALSE(drafted(longer).empty());
    EXPECT_EQ(behind(longer, n_of_longer), drafted(longer));
    EXPECT_EQ(behind(other, n_of_other), drafted(other));
  }
}

// "auto" alone uses the drafters in the model's directory.
TEST_F(HeadDrafters, AreFoundInTheModelsDirectory) {
  test::write_mtp_modules(golden_shape(), 2, target_path());
  test::write_eagle_head(golden_shape(), target_path() / "head", "feature+shifted-token");
  const auto drafter = make("auto");
  std::vector<std::string> specs;
  for (const Drafter::Option& option : drafter->choices()) specs.push_back(option.spec);
  const std::vector<std::string> expected = {"suffix", "mtp",
                                             "eagle:" + (target_path() / "head").string()};
  EXPECT_EQ(specs, expected);
  EXPECT_TRUE(drafter->traits().reads_features);
  EXPECT_FALSE(drafts_of(*target_, *drafter, {3, 1, 4}, 1).nodes.front().empty());
}

}  // namespace
}  // namespace outrider
