// SPDX-License-Identifier: Apache-2.0
// Exports of heads: every name and shape, the trained values, and the engine's drafts with them,
// which equal the golden program's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "model/heads/eagle_config.h"
#include "model/heads/eagle_head.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "tests/support/goldens/golden_drafts.h"
#include "tests/support/goldens/golden_heads.h"
#include "tests/support/models/run_model.h"
#include "tests/support/near.h"
#include "train/objective.h"
#include "train/objectives/eagle.h"
#include "train/objectives/medusa.h"
#include "train/objectives/mtp.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;
using test::as_golden;
using test::fill_with_golden_values;
using test::golden_heads;
using test::GoldenHeads;
using test::kGoldenTolerance;
using test::near;
using torch::Tensor;
using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;

std::map<std::string, Shape> shapes_of(const TensorSource& source) {
  std::map<std::string, Shape> shapes;
  for (const TensorView& tensor : source.tensors()) shapes[tensor.name] = tensor.shape;
  return shapes;
}

std::map<std::string, Shape> layer_shapes(const std::string& prefix, std::int64_t width,
                                          bool input_norm) {
  std::map<std::string, Shape> shapes = {{prefix + "self_attn.q_proj.weight", {8, width}},
                                         {prefix + "self_attn.k_proj.weight", {4, width}},
                                         {prefix + "self_attn.v_proj.weight", {4, width}},
                                         {prefix + "self_attn.o_proj.weight", {8, 8}},
                                         {prefix + "mlp.gate_proj.weight", {12, 8}},
                                         {prefix + "mlp.up_proj.weight", {12, 8}},
                                         {prefix + "mlp.down_proj.weight", {8, 12}},
                                         {prefix + "post_attention_layernorm.weight", {8}}};
  if (input_norm) shapes[prefix + "input_layernorm.weight"] = {8};
  return shapes;
}

void expect_values(const TensorSource& source, torch::nn::Module& module) {
  for (const auto& parameter : module.named_parameters()) {
    const TensorView* view = source.find(parameter.key());
    ASSERT_NE(view, nullptr) << parameter.key();
    const Tensor values = parameter.value().contiguous();
    ASSERT_EQ(view->data.size(), sizeof(float) * static_cast<std::size_t>(values.numel()));
    EXPECT_EQ(std::memcmp(view->data.data(), values.data_ptr<float>(), view->data.size()), 0)
        << parameter.key();
  }
}

Json config_of(const fs::path& directory) {
  return Json::parse(std::ifstream(directory / "config.json"));
}

TEST_F(GoldenHeads, EagleExportsThePublicNames) {
  const auto objective = eagle(EagleInputs::feature_shifted_token);
  objective->export_to(out());
  const auto source = open_safetensors_directory(out());
  std::map<std::string, Shape> expected = layer_shapes("layers.0.", 8, false);
  expected["fc.weight"] = {8, 16};
  expected["fc.bias"] = {8};
  expected["embed_tokens.weight"] = {23, 8};
  EXPECT_EQ(shapes_of(*source), expected);
  expect_values(*source, objective->trained());
  std::vector<float> embedding(23 * 8);
  decode_rows(*source->find("embed_tokens.weight"), 0, 23, embedding);
  EXPECT_EQ(embedding, run_.target->input_matrix());
  const Json config = config_of(out());
  EXPECT_EQ(config["num_hidden_layers"], 1);
  EXPECT_EQ(config["bias"], true);
  EXPECT_EQ(config["eagle_version"], 1);
  EXPECT_EQ(config["eagle_inputs"], "feature+shifted-token");
  EXPECT_EQ(read_eagle_config(out(), run_.target->config()).layer.n_layers, 1);
}

TEST_F(GoldenHeads, Eagle3ExportsThePublicNames) {
  const auto objective = eagle3(true);
  objective->export_to(out());
  const auto source = open_safetensors_directory(out());
  std::map<std::string, Shape> expected = layer_shapes("midlayer.", 16, true);
  expected["midlayer.hidden_norm.weight"] = {8};
  expected["fc.weight"] = {8, 24};
  expected["norm.weight"] = {8};
  expected["lm_head.weight"] = {12, 8};
  expected["d2t"] = {12};
  expected["t2d"] = {23};
  EXPECT_EQ(shapes_of(*source), expected);
  expect_values(*source, objective->trained());
  const TensorView* d2t = source->find("d2t");
  const TensorView* t2d = source->find("t2d");
  ASSERT_EQ(d2t->type, ElementType::i64);
  ASSERT_EQ(t2d->type, ElementType::boolean);
  const auto ids = golden_heads()["draft_vocabulary"].get<std::vector<std::int64_t>>();
  std::vector<std::int64_t> offsets(ids.size());
  std::memcpy(offsets.data(), d2t->data.data(), d2t->data.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(static_cast<std::int64_t>(i) + offsets[i], ids[i]);
  }
  for (int token = 0; token < 23; ++token) {
    const bool expected_flag = std::find(ids.begin(), ids.end(), token) != ids.end();
    EXPECT_EQ(t2d->data[static_cast<std::size_t>(token)] == std::byte{1}, expected_flag);
  }
  const Json config = config_of(out());
  EXPECT_EQ(config["draft_vocab_size"], 12);
  EXPECT_EQ(config["eagle_version"], 3);
  EXPECT_EQ(config["feature_layers"], Json::array({0, 1, 2}));
}

TEST_F(GoldenHeads, MedusaExportsThePublicNames) {
  for (const bool own : {true, false}) {
    const fs::path directory = out() / (own ? "own" : "shared");
    const auto objective = medusa(own);
    objective->export_to(directory);
    const auto source = open_safetensors(directory / "medusa_lm_head.safetensors");
    std::map<std::string, Shape> expected;
    for (const char* head : {"0", "1", "2"}) {
      expected[std::string(head) + ".0.linear.weight"] = {8, 8};
      expected[std::string(head) + ".0.linear.bias"] = {8};
      if (own) expected[std::string(head) + ".1.weight"] = {23, 8};
    }
    EXPECT_EQ(shapes_of(*source), expected);
    expect_values(*source, objective->trained());
    EXPECT_EQ(config_of(directory)["medusa_num_heads"], 3);
    EXPECT_EQ(config_of(directory)["medusa_num_layers"], 1);
  }
}

TEST_F(GoldenHeads, MedusaBeginsAsTheTarget) {
  const auto objective = medusa(true);
  for (const auto& parameter : objective->trained().named_parameters()) {
    if (parameter.key().ends_with(".1.weight")) {
      const Tensor values = parameter.value().detach().contiguous().view({-1});
      const std::vector<float> head(values.data_ptr<float>(),
                                    values.data_ptr<float>() + values.numel());
      EXPECT_EQ(head, run_.target->output_matrix());
    } else {
      EXPECT_EQ(parameter.value().abs().max().item<double>(), 0) << parameter.key();
    }
  }
}

// Checks the engine's drafts with the exported head.
void expect_drafts(const fs::path& target_path, const std::string& spec, const Json& expected) {
  const auto target = load_model(target_path, {.n_threads = 1});
  const auto drafter = read_drafter(spec).make({.target = target.get(),
                                                .target_path = target_path,
                                                .vocabulary_size = target->config().vocabulary_size,
                                                .load = {.n_threads = 1}});
  test::expect_golden_drafts(*target, *drafter, expected);
}

TEST_F(GoldenHeads, ExportedHeadsDraftInTheEngineAsTheGoldenProgram) {
  const Json& drafts = test::golden_drafts();
  const auto exported = [&](const std::shared_ptr<Objective>& objective, const char* name) {
    fill_with_golden_values(objective->trained());
    objective->export_to(out() / name);
    return (out() / name).string();
  };
  for (const auto& [inputs, expected] : drafts["eagle"].items()) {
    SCOPED_TRACE(inputs);
    const auto head = eagle(eagle_inputs_named(inputs));
    expect_drafts(target_path(), "eagle:" + exported(head, inputs.c_str()), expected);
  }
  expect_drafts(target_path(), "eagle:" + exported(eagle3(false), "whole"),
                drafts["eagle3"]["whole"]);
  expect_drafts(target_path(), "eagle:" + exported(eagle3(true), "reduced"),
                drafts["eagle3"]["reduced"]);
  expect_drafts(target_path(), "medusa:" + exported(medusa(true), "own"), drafts["medusa"]["own"]);
  expect_drafts(target_path(), "medusa:" + exported(medusa(false), "shared"),
                drafts["medusa"]["shared"]);
  std::ofstream(target_path() / "tokenizer.json") << "{}";
  expect_drafts(exported(mtp(), "mtp"), "mtp", drafts["mtp"]["2"]);
}

// After a few training steps, a head computes the same in the engine as in the trainer: the
// cross-entropy of every row, both in f32.
TEST_F(GoldenHeads, ATrainedHeadIsTheSameInTheEngine) {
  const auto objective = eagle(EagleInputs::feature_shifted_token);
  torch::optim::Adam optimiser(objective->trained().parameters(), torch::optim::AdamOptions(0.01));
  for (int step = 0; step < 8; ++step) {
    optimiser.zero_grad();
    objective->loss(step).value.backward();
    optimiser.step();
  }
  objective->export_to(out());
  const auto target = load_model(target_path(), {.n_threads = 1});
  const auto head = load_eagle_head(out(), *target, {.n_threads = 1});
  const auto rows = [](std::span<const float> values, int n, int width) {
    return torch::tensor(at::ArrayRef<float>(values.data(), values.size()), torch::kFloat32)
        .narrow(0, 0, std::int64_t{n} * width)
        .view({n, width});
  };
  double loss = 0;
  double weight = 0;
  for (std::size_t text = 0; text < golden_heads()["tokens"].size(); ++text) {
    const auto tokens = golden_heads()["tokens"][text].get<std::vector<TokenId>>();
    const auto n = static_cast<int>(tokens.size());
    const auto sequence = target->open({});
    const auto head_sequence = head->open({});
    TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
    ForwardOutput seen;
    target->forward({&block, 1}, {.feature_layers = head->feature_layers()}, seen);
    block = {.sequence = head_sequence.get(),
             .tokens = std::span(tokens).subspan(1),
             .parents = {},
             .features =
                 std::span<const float>(seen.features).first(static_cast<std::size_t>(n - 1) * 8)};
    ForwardOutput given;
    head->forward({&block, 1}, {}, given);
    const Tensor target_prob =
        torch::softmax(rows(seen.logits.values(), n, 23), -1).narrow(0, 1, n - 1);
    const Tensor losses =
        -(target_prob * torch::log_softmax(rows(given.logits.values(), n - 1, 23), -1)).sum(-1);
    for (int row = 0; row + 2 < n; ++row) {
      const double its = golden_heads()["weights"][text][static_cast<std::size_t>(row + 2)];
      loss += its * losses[row].item<double>();
      weight += its;
    }
  }
  EXPECT_TRUE(
      near(loss / weight, as_golden(objective->evaluate())["token_loss"], kGoldenTolerance));
}

std::map<std::string, Shape> module_shapes(int layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  std::map<std::string, Shape> shapes = layer_shapes(prefix, 8, true);
  shapes[prefix + "enorm.weight"] = {8};
  shapes[prefix + "hnorm.weight"] = {8};
  shapes[prefix + "eh_proj.weight"] = {8, 16};
  shapes[prefix + "shared_head.norm.weight"] = {8};
  return shapes;
}

test::Rows logits_of(const fs::path& directory) {
  const auto model = load_model(directory, {.n_threads = 1});
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {1, 7, 22, 3, 3, 8};
  return test::run_block(*model, *sequence, tokens);
}

TEST_F(GoldenHeads, ModulesAreAddedToACopyOfTheTarget) {
  constexpr const char* kBeside[] = {"tokenizer.json", "tokenizer.model", "generation_config.json"};
  for (const char* name : kBeside) std::ofstream(target_path() / name) << "{}";
  mtp()->export_to(out());
  EXPECT_FALSE(fs::exists(out() / "model.safetensors"));
  const auto source = open_safetensors_directory(out());
  std::map<std::string, Shape> expected = shapes_of(*open_safetensors_directory(target_path()));
  expected.merge(module_shapes(3));
  expected.merge(module_shapes(4));
  EXPECT_EQ(shapes_of(*source), expected);
  Json config = config_of(out());
  EXPECT_EQ(config["num_nextn_predict_layers"], 2);
  config.erase("num_nextn_predict_layers");
  EXPECT_EQ(config, config_of(target_path()));
  for (const char* name : kBeside) EXPECT_TRUE(fs::exists(out() / name)) << name;
  // Programs that ignore modules load the target.
  EXPECT_EQ(logits_of(out()), logits_of(target_path()));

  // A copy of a copy: shards and their index are read. Modules on top of modules are refused before
  // anything is trained.
  run_.target = std::make_shared<Teacher>(out(), 1);
  try {
    make_mtp({.run = run_, .target_directory = out(), .n_modules = 1});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("model.layers.3"), std::string::npos) << error.what();
  }
  EXPECT_THROW(make_mtp({.run = run_, .target_directory = "model.gguf", .n_modules = 1}),
               UsageError);
}

TEST_F(GoldenHeads, ModulesAloneDraftForATargetThatStaysWhereItIs) {
  const MtpOptions options{
      .run = run_, .target_directory = "model.gguf", .n_modules = 2, .alone = true};
  const auto objective = make_mtp(options);  // no directory to copy is given
  fill_with_golden_values(objective->trained());
  objective->export_to(out());
  std::map<std::string, Shape> expected = module_shapes(3);
  expected.merge(module_shapes(4));
  EXPECT_EQ(shapes_of(*open_safetensors(out() / "model.safetensors")), expected);
  EXPECT_EQ(config_of(out())["num_nextn_predict_layers"], 2);
  EXPECT_FALSE(fs::exists(out() / "tokenizer.json"));
  expect_drafts(target_path(), "mtp:" + out().string(), test::golden_drafts()["mtp"]["2"]);
  objective->export_to(out());  // as a run with exports in between does
}

TEST_F(GoldenHeads, AModelTrainedWithModulesCarriesThem) {
  const auto objective = lm();
  objective->export_to(out());
  const auto source = open_safetensors_directory(out());
  std::map<std::string, Shape> expected = shapes_of(*open_safetensors_directory(target_path()));
  expected.merge(module_shapes(3));
  expected.merge(module_shapes(4));
  EXPECT_EQ(shapes_of(*source), expected);
  EXPECT_EQ(config_of(out())["num_nextn_predict_layers"], 2);
  EXPECT_EQ(read_config_json(out()).n_layers, 3);
  EXPECT_EQ(logits_of(out()).size(), 6u);
}

}  // namespace
}  // namespace outrider::train
