// Heads on a frozen target: their losses against a program written from the papers' equations
// (tests/golden/make_heads_golden.py) and against differences; what they learn; what they export.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "model/eagle_head.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/drafter_registry.h"
#include "tests/support/golden_drafts.h"
#include "tests/support/near.h"
#include "tests/support/run_model.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_heads.h"
#include "tests/support/tiny_model.h"
#include "train/draft_vocabulary.h"
#include "train/generated_source.h"
#include "train/objective.h"
#include "train/objectives/eagle.h"
#include "train/objectives/eagle3.h"
#include "train/objectives/lm.h"
#include "train/objectives/medusa.h"
#include "train/objectives/mtp.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;
using test_support::near;
using ::testing::ElementsAre;
using torch::Tensor;
using Json = nlohmann::json;
using Shape = std::vector<std::int64_t>;

void fill_with_golden_values(torch::nn::Module& module) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    const Shape shape = parameter.value().sizes().vec();
    parameter.value().copy_(
        torch::tensor(testing::chirp(parameter.key(), shape), torch::kFloat32).view(shape));
  }
}

const Json& golden() {
  static const Json kGolden =
      Json::parse(std::ifstream(fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "heads.json"));
  return kGolden;
}

class OneBatch final : public BatchSource {
 public:
  explicit OneBatch(Batch batch) : batch_(std::move(batch)) {}
  Batch batch(std::int64_t) override { return batch_; }
  std::int64_t n_tokens() const override { return static_cast<std::int64_t>(batch_.tokens.size()); }

 private:
  Batch batch_;
};

std::shared_ptr<BatchSource> golden_batch() {
  Batch batch{.n_sequences = 0, .length = 0, .tokens = {}, .weights = {}};
  for (const auto& row : golden()["tokens"]) {
    ++batch.n_sequences;
    batch.length = static_cast<int>(row.size());
    for (const auto& token : row) batch.tokens.push_back(token);
  }
  for (const auto& row : golden()["weights"]) {
    for (const auto& weight : row) batch.weights.push_back(weight);
  }
  return std::make_shared<OneBatch>(std::move(batch));
}

// The target of the golden program, in a directory of its own.
class Golden : public ::testing::Test {
 protected:
  Golden() {
    testing::write_hugging_face(testing::golden_target(), target_path());
    run_.target = std::make_shared<Teacher>(target_path(), 1);
    run_.batches = golden_batch();
    run_.held_out = run_.batches;
    run_.n_held_out_batches = 1;
    run_.products = Products::full;
    run_.export_type = ElementType::f32;
  }

  fs::path target_path() const { return directory_.path() / "target"; }
  fs::path out() const { return directory_.path() / "out"; }

  std::shared_ptr<Objective> eagle(EagleInputs inputs, double noise = 0) const {
    return make_eagle({.run = run_, .inputs = inputs, .noise = noise});
  }
  std::shared_ptr<Objective> eagle3(bool reduced) const {
    Eagle3Options options{.run = run_, .n_steps = 4};
    if (reduced) {
      options.draft_vocabulary = golden()["draft_vocabulary"].get<std::vector<TokenId>>();
    }
    return make_eagle3(options);
  }
  std::shared_ptr<Objective> medusa(bool own) const {
    return make_medusa({.run = run_, .n_heads = 3, .own_lm_head = own});
  }
  std::shared_ptr<Objective> mtp() const {
    return make_mtp({.run = run_, .target_directory = target_path(), .n_modules = 2});
  }
  std::shared_ptr<Objective> lm() const {
    LmOptions options;
    options.config = run_.target->config();
    options.products = Products::full;
    options.batches = run_.batches;
    options.held_out = run_.batches;
    options.n_held_out_batches = 1;
    options.tokenizer = target_path();
    options.export_type = ElementType::f32;
    options.n_mtp_modules = 2;
    return make_lm(options);
  }

  testing::TemporaryDirectory directory_;
  HeadRun run_;
};

// The figures under the names that the golden file has for them.
std::map<std::string, double> as_golden(const std::vector<Metric>& metrics) {
  std::map<std::string, double> named;
  for (const auto& [name, value] : metrics) {
    std::string plain = name.starts_with("mtp_") ? name.substr(4) : name;
    if (plain == "agreement") plain = "agreement_0";
    named[plain] = value;
  }
  return named;
}

// The engine's features and the head are f32, the golden program f64.
constexpr double kTolerance = 1e-5;

void expect_golden(Objective& objective, const Json& expected, const std::string& held_out_loss) {
  fill_with_golden_values(objective.trained());
  const Loss loss = objective.loss(0);
  EXPECT_TRUE(near(loss.value.item<double>(), expected["loss"], kTolerance));
  EXPECT_FALSE(loss.metrics.empty());
  for (const auto& [name, value] : as_golden(loss.metrics)) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(near(value, expected[name], kTolerance)) << name;
  }
  auto held_out = as_golden(objective.evaluate());
  EXPECT_TRUE(near(held_out["loss"], expected[held_out_loss], kTolerance));
  held_out.erase("loss");
  for (const auto& [name, value] : held_out) {
    ASSERT_TRUE(expected.contains(name)) << name;
    EXPECT_TRUE(near(value, expected[name], kTolerance)) << name;
  }
  // Nothing that the program measured was left out here.
  for (const auto& [name, value] : expected.items()) {
    EXPECT_TRUE(name == "loss" || name == "lm_loss" || held_out.contains(name)) << name;
  }
}

TEST_F(Golden, Eagle) {
  for (const auto& [inputs, expected] : golden()["eagle"].items()) {
    SCOPED_TRACE(inputs);
    expect_golden(*eagle(eagle_inputs_named(inputs)), expected, "loss");
    EXPECT_EQ(name_of(eagle_inputs_named(inputs)), inputs);
  }
  EXPECT_THROW(eagle_inputs_named("both"), UsageError);
}

TEST_F(Golden, Eagle3) {
  expect_golden(*eagle3(false), golden()["eagle3"]["whole"], "loss");
  expect_golden(*eagle3(true), golden()["eagle3"]["reduced"], "loss");
}

TEST_F(Golden, Medusa) {
  expect_golden(*medusa(true), golden()["medusa"]["own"], "loss");
  expect_golden(*medusa(false), golden()["medusa"]["shared"], "loss");
}

TEST_F(Golden, MultiTokenPrediction) {
  expect_golden(*mtp(), golden()["mtp"], "loss");
  expect_golden(*lm(), golden()["lm"], "lm_loss");
}

// Central differences in doubles: the error is about h^2 of third derivatives plus eps / h of the
// loss. Weights are of order one and pass several norms, so that third derivatives may reach a
// hundred or so: 1e-8 at h = 1e-5. A wrong term would be a thousand times that.
void expect_gradients_are_differences(Objective& objective) {
  torch::nn::Module& module = objective.trained();
  module.to(torch::kFloat64);
  fill_with_golden_values(module);
  const auto loss = [&] {
    torch::manual_seed(5);  // the same noise each time
    return objective.loss(0).value;
  };
  module.zero_grad();
  loss().backward();
  constexpr double kStep = 1e-5;
  for (auto& parameter : module.named_parameters()) {
    const Tensor values = parameter.value().detach().view({-1});
    ASSERT_TRUE(parameter.value().grad().defined()) << parameter.key();
    const Tensor gradient = parameter.value().grad().view({-1});
    for (int probe = 0; probe < 2; ++probe) {
      const std::int64_t index = (probe * 7919 + 13) % values.numel();
      const torch::NoGradGuard no_grad;
      const double before = values[index].item<double>();
      values[index] = before + kStep;
      const double above = loss().item<double>();
      values[index] = before - kStep;
      const double below = loss().item<double>();
      values[index] = before;
      EXPECT_TRUE(near(gradient[index].item<double>(), (above - below) / (2 * kStep), 1e-7))
          << parameter.key() << "[" << index << "]";
    }
  }
}

TEST_F(Golden, GradientsAreDifferences) {
  expect_gradients_are_differences(*eagle(EagleInputs::feature_shifted_token, 0.1));
  expect_gradients_are_differences(*eagle(EagleInputs::token));
  expect_gradients_are_differences(*eagle3(true));
  expect_gradients_are_differences(*medusa(true));
  expect_gradients_are_differences(*medusa(false));
  expect_gradients_are_differences(*mtp());
  expect_gradients_are_differences(*lm());
}

TEST_F(Golden, NoiseIsUniformAndOfTraining) {
  const auto quiet = eagle(EagleInputs::feature_shifted_token);
  const auto noisy = eagle(EagleInputs::feature_shifted_token, 0.1);
  fill_with_golden_values(quiet->trained());
  fill_with_golden_values(noisy->trained());
  const auto loss = [](Objective& objective, int seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    return objective.loss(0).value.item<double>();
  };
  EXPECT_EQ(loss(*quiet, 1), loss(*quiet, 2));
  EXPECT_NE(loss(*noisy, 1), loss(*noisy, 2));
  EXPECT_EQ(loss(*noisy, 1), loss(*noisy, 1));
  EXPECT_EQ(noisy->evaluate(), quiet->evaluate());
}

// Exports: every name and shape, and the values that were trained.

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

TEST_F(Golden, EagleExportsThePublicNames) {
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
  EXPECT_EQ(read_config_json(out()).n_layers, 1);  // Llama's reader takes it
}

TEST_F(Golden, Eagle3ExportsThePublicNames) {
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
  const auto ids = golden()["draft_vocabulary"].get<std::vector<std::int64_t>>();
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

TEST_F(Golden, MedusaExportsThePublicNames) {
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

TEST_F(Golden, MedusaBeginsAsTheTarget) {
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

// What the engine drafts with the head that was exported.
void expect_drafts(const fs::path& target_path, const std::string& spec, const Json& expected) {
  const auto target = load_model(target_path, {.n_threads = 1});
  const auto drafter = read_drafter(spec).make({.target = target.get(),
                                                .target_path = target_path,
                                                .vocabulary_size = target->config().vocabulary_size,
                                                .load = {.n_threads = 1}});
  testing::expect_golden_drafts(*target, *drafter, expected);
}

TEST_F(Golden, ExportedHeadsDraftInTheEngineAsTheGoldenProgram) {
  const Json& drafts = testing::golden_drafts();
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

// What a few steps have made of a head computes in the engine as in the trainer: the cross-entropy
// of every row, both in f32.
TEST_F(Golden, ATrainedHeadIsTheSameInTheEngine) {
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
  const auto rows = [](const std::vector<float>& values, int n, int width) {
    return torch::tensor(values, torch::kFloat32)
        .narrow(0, 0, std::int64_t{n} * width)
        .view({n, width});
  };
  double loss = 0;
  double weight = 0;
  for (std::size_t text = 0; text < golden()["tokens"].size(); ++text) {
    const auto tokens = golden()["tokens"][text].get<std::vector<TokenId>>();
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
    const Tensor target_prob = torch::softmax(rows(seen.logits, n, 23), -1).narrow(0, 1, n - 1);
    const Tensor losses =
        -(target_prob * torch::log_softmax(rows(given.logits, n - 1, 23), -1)).sum(-1);
    for (int row = 0; row + 2 < n; ++row) {
      const double its = golden()["weights"][text][static_cast<std::size_t>(row + 2)];
      loss += its * losses[row].item<double>();
      weight += its;
    }
  }
  EXPECT_TRUE(near(loss / weight, as_golden(objective->evaluate())["token_loss"], kTolerance));
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

testing::Rows logits_of(const fs::path& directory) {
  const auto model = load_model(directory, {.n_threads = 1});
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {1, 7, 22, 3, 3, 8};
  return testing::run_block(*model, *sequence, tokens);
}

TEST_F(Golden, ModulesAreAddedToACopyOfTheTarget) {
  std::ofstream(target_path() / "tokenizer.json") << "{}";
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
  EXPECT_TRUE(fs::exists(out() / "tokenizer.json"));
  // Those who know no modules see the target.
  EXPECT_EQ(logits_of(out()), logits_of(target_path()));

  // A copy of a copy: shards and their index are read, and modules are not put on modules.
  run_.target = std::make_shared<Teacher>(out(), 1);
  const auto again = make_mtp({.run = run_, .target_directory = out(), .n_modules = 1});
  try {
    again->export_to(directory_.path() / "again");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("model.layers.3"), std::string::npos) << error.what();
  }
  EXPECT_THROW(make_mtp({.run = run_, .target_directory = "model.gguf", .n_modules = 1}),
               UsageError);
}

TEST_F(Golden, AModelTrainedWithModulesCarriesThem) {
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

// What a draft vocabulary and the features come from.

TEST(Eagle3, TakesFeaturesOfThreeDepths) {
  EXPECT_THAT(eagle3_feature_layers(32), ElementsAre(2, 16, 29));
  EXPECT_THAT(eagle3_feature_layers(7), ElementsAre(2, 3, 4));
  EXPECT_THAT(eagle3_feature_layers(6), ElementsAre(1, 3, 5));
  EXPECT_THAT(eagle3_feature_layers(5), ElementsAre(1, 2, 4));
  EXPECT_THAT(eagle3_feature_layers(2), ElementsAre(0, 1, 2));
  EXPECT_THAT(eagle3_feature_layers(1), ElementsAre(0, 0, 1));
}

TEST(Eagle3, TheDraftVocabularyIsWhatTheTextSaysMost) {
  const std::vector<TokenId> text = {5, 1, 5, 2, 5, 2, 7, 0};
  EXPECT_THAT(most_frequent_tokens(text, 2, 9), ElementsAre(2, 5));
  EXPECT_THAT(most_frequent_tokens(text, 4, 9), ElementsAre(0, 1, 2, 5));  // 7 is as rare, later
  EXPECT_THAT(most_frequent_tokens(text, 9, 9), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(Golden, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make_eagle3({.run = run_, .n_steps = 0}), UsageError);
  const std::vector<std::vector<TokenId>> wrong = {{3, 2}, {3, 3}, {3, 23}, {-1, 3}};
  for (const std::vector<TokenId>& ids : wrong) {
    EXPECT_THROW(make_eagle3({.run = run_, .draft_vocabulary = ids}), Error);
  }
  EXPECT_THROW(make_medusa({.run = run_, .n_heads = 0}), UsageError);
  Batch strange = run_.batches->batch(0);
  strange.tokens[3] = 23;  // of another tokenizer
  run_.batches = std::make_shared<OneBatch>(strange);
  for (const auto& objective : {eagle(EagleInputs::token), medusa(false), mtp()}) {
    try {
      objective->loss(0);
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
}

// Text of the target's own, for the rest.
class Learning : public ::testing::Test {
 protected:
  Learning() {
    testing::TinyShape shape;
    shape.vocabulary_size = 40;
    shape.context_length = 64;
    shape.n_layers = 2;
    shape.dim = 16;
    shape.n_heads = 2;
    shape.n_kv_heads = 2;
    shape.head_dim = 8;
    shape.hidden_dim = 32;
    shape.logit_spread = 4;
    testing::write_hugging_face(testing::make_tiny_model(shape), target_path());
    run_.target = std::make_shared<Teacher>(target_path(), 1);
    run_.batches = std::make_shared<OneBatch>(written(1)->batch(0));
    run_.held_out = run_.batches;
    run_.n_held_out_batches = 1;
    run_.products = Products::full;
    run_.export_type = ElementType::f32;
  }

  fs::path target_path() const { return directory_.path() / "target"; }

  std::shared_ptr<GeneratedSource> written(double temperature, std::uint64_t seed = 3) const {
    std::vector<TokenId> stream;
    for (int i = 0; i < 400; ++i) stream.push_back(2 + static_cast<TokenId>(mix(7, i) % 38));
    return std::make_shared<GeneratedSource>(
        std::make_shared<WindowSource>(stream, BatchShape{.n_sequences = 2, .length = 24}),
        run_.target, GenerationOptions{.n_prefix = 4, .temperature = temperature, .seed = seed});
  }

  static RunOptions run_options(const fs::path& directory, int n_steps) {
    RunOptions options;
    options.directory = directory;
    options.schedule = {.peak = 1e-2, .final_share = 0.1, .n_warmup = 5, .n_steps = n_steps};
    options.optimizer = {.weight_decay = 0, .clip_norm = 0, .clip_value = 0.5};
    options.seed = 5;
    options.checkpoint_interval = 7;
    return options;
  }

  testing::TemporaryDirectory directory_;
  HeadRun run_;
};

double figure(Objective& objective, const std::string& name) {
  for (const auto& [known, value] : objective.evaluate()) {
    if (known == name) return value;
  }
  ADD_FAILURE() << name;
  return 0;
}

// Forty places can be learned by heart. What is learned must show where the head is used: on the
// target's features at the first step, on its own predictions later.
TEST_F(Learning, HeadsLearnAFewPlacesByHeart) {
  struct Case {
    std::string name;
    std::shared_ptr<Objective> objective;
    std::vector<std::string> figures;
  };
  const Case cases[] = {
      {"eagle", make_eagle({.run = run_, .noise = 0.01}), {"agreement_0", "overlap_0"}},
      {"eagle3",
       make_eagle3({.run = run_, .n_steps = 3}),
       {"agreement_0", "overlap_0", "agreement_2", "overlap_2"}},
      {"medusa", make_medusa({.run = run_, .n_heads = 2}), {"agreement_1"}},
      {"mtp",
       make_mtp({.run = run_, .target_directory = target_path(), .n_modules = 2}),
       {"agreement_1", "agreement_2"}}};
  for (const Case& c : cases) {
    std::vector<double> before;
    for (const std::string& name : c.figures) before.push_back(figure(*c.objective, name));
    run_training(*c.objective, run_options(directory_.path() / c.name, 200), {});
    for (std::size_t i = 0; i < c.figures.size(); ++i) {
      const double after = figure(*c.objective, c.figures[i]);
      EXPECT_GT(after, before[i] + 0.25) << c.name << " " << c.figures[i];
      EXPECT_GT(after, 0.5) << c.name << " " << c.figures[i];
    }
  }
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// With everything that could depend on how a run got there: noise, generated text, bf16.
TEST_F(Learning, AStoppedRunGoesOnBitForBit) {
  run_.batches = written(1);
  run_.products = Products::bf16;
  const auto objective = [&] { return make_eagle({.run = run_}); };
  run_training(*objective(), run_options(directory_.path() / "whole", 12), {});
  const std::string whole = bytes_of(directory_.path() / "whole" / "model.safetensors");
  ASSERT_FALSE(whole.empty());
  for (const int stop : {0, 3, 7, 11}) {
    RunOptions options = run_options(directory_.path() / std::to_string(stop), 12);
    int n_asked = 0;
    run_training(*objective(), options,
                 {.on_step = {}, .should_stop = [&] { return n_asked++ == stop; }});
    options.resume = true;
    EXPECT_TRUE(run_training(*objective(), options, {}).finished);
    EXPECT_EQ(bytes_of(options.directory / "model.safetensors"), whole) << "stopped at " << stop;
  }
}

TEST_F(Learning, ARunOfAnotherHeadIsOneClearLine) {
  RunOptions options = run_options(directory_.path() / "run", 3);
  run_training(*make_eagle({.run = run_}), options, {});
  options.resume = true;
  try {
    run_training(*make_medusa({.run = run_}), options, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

TEST_F(Learning, GeneratedTextIsTheTargets) {
  const auto greedy = written(0);
  const Batch batch = greedy->batch(2);
  run_.target->run(batch.tokens, batch.n_sequences, true, {});
  int n_written = 0;
  for (int i = 0; i < batch.n_sequences; ++i) {
    bool ended = false;
    for (int place = 0; place < batch.length; ++place) {
      const int at = i * batch.length + place;
      const TokenId token = batch.tokens[static_cast<std::size_t>(at)];
      const float weight = batch.weights[static_cast<std::size_t>(at)];
      if (place < 4 || ended) {
        EXPECT_EQ(weight, 0);
        continue;
      }
      EXPECT_EQ(weight, 1);
      ++n_written;
      const std::span<const float> logits = run_.target->output().logits_row(at - 1);
      EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
      ended = token == 1;  // the tiny models' end of text
    }
  }
  EXPECT_GT(n_written, 4);
}

// A batch depends on its number, not on those before it.
TEST_F(Learning, GeneratedTextComesByNumber) {
  const auto one = written(1);
  const auto other = written(1);
  const Batch third = one->batch(3);
  other->batch(0);
  other->batch(7);
  EXPECT_EQ(other->batch(3).tokens, third.tokens);
  EXPECT_EQ(other->batch(3).weights, third.weights);
  EXPECT_NE(one->batch(4).tokens, third.tokens);
  EXPECT_NE(written(1, 4)->batch(3).tokens, third.tokens);
  EXPECT_THROW(GeneratedSource(run_.batches, run_.target, {.n_prefix = 24}), Error);
}

// Sampling follows the target's law. The seed is fixed, so this is one draw of chi-square: five
// standard deviations above its mean it lies with a probability below 1e-4.
TEST_F(Learning, SampledTextFollowsTheLaw) {
  constexpr int kDraws = 4000;
  Batch batch{.n_sequences = kDraws, .length = 3, .tokens = {}, .weights = {}};
  for (int i = 0; i < kDraws; ++i) {
    batch.tokens.insert(batch.tokens.end(), {5, 9, 0});
    batch.weights.insert(batch.weights.end(), {0, 0, 0});
  }
  GeneratedSource source(std::make_shared<OneBatch>(batch), run_.target,
                         {.n_prefix = 2, .temperature = 1.5, .seed = 1});
  const Batch drawn = source.batch(0);
  const std::vector<TokenId> prefix = {5, 9};
  run_.target->run(prefix, 1, true, {});
  const std::span<const float> logits = run_.target->output().logits_row(1);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit / 1.5);
  std::vector<int> counts(logits.size());
  for (int i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(drawn.tokens[static_cast<std::size_t>(i) * 3 + 2])];
  }
  double chi_square = 0;
  int n_cells = 0;
  double rest_expected = 0;
  double rest_seen = 0;
  for (std::size_t token = 0; token < logits.size(); ++token) {
    const double expected = kDraws * std::exp(logits[token] / 1.5) / sum;
    if (expected < 10) {  // merged: the approximation wants ten in a cell
      rest_expected += expected;
      rest_seen += counts[token];
      continue;
    }
    ++n_cells;
    chi_square += (counts[token] - expected) * (counts[token] - expected) / expected;
  }
  if (rest_expected >= 10) {
    ++n_cells;
    chi_square += (rest_seen - rest_expected) * (rest_seen - rest_expected) / rest_expected;
  }
  ASSERT_GT(n_cells, 5);
  EXPECT_LT(chi_square, n_cells + 5 * std::sqrt(2.0 * n_cells));
}

}  // namespace
}  // namespace outrider::train
