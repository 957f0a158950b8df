// SPDX-License-Identifier: Apache-2.0
// Particulars of GPT-2 and GPT-NeoX: optional name prefixes, features that begin with positions and
// end with a LayerNorm, and partly rotated heads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "model/config.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using test::Rows;

// A copy of a golden model, to be changed.
class ChangedModel {
 public:
  explicit ChangedModel(const std::string& name) {
    const fs::path golden = fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / name;
    fs::copy(golden, path(), fs::copy_options::recursive);
    ids_ = nlohmann::json::parse(std::ifstream(golden / "golden.json"))["ids"]
               .get<std::vector<TokenId>>();
  }

  const fs::path& path() const { return directory_.path(); }
  const std::vector<TokenId>& ids() const { return ids_; }

  void set(const char* key, const nlohmann::json& value) const {
    const fs::path file = path() / "config.json";
    nlohmann::json json = nlohmann::json::parse(std::ifstream(file));
    json[key] = value;
    std::ofstream(file) << json.dump();
  }
  // Replaces text in all tensor names; the new text may be shorter.
  void rename(const std::string& text, const std::string& by) const {
    const fs::path file = path() / "model.safetensors";
    std::ifstream stream(file, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(stream)), {});
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    std::string header = bytes.substr(sizeof length, length);
    std::size_t n_found = 0;
    for (std::size_t at = 0; (at = header.find(text, at)) != std::string::npos; ++n_found) {
      header.replace(at, text.size(), by);
      at += by.size();
    }
    ASSERT_GT(n_found, 0U) << text;
    ASSERT_LE(header.size(), length);
    header.resize(length, ' ');
    bytes.replace(sizeof length, length, header);
    std::ofstream(file, std::ios::binary) << bytes;
  }

  std::unique_ptr<LanguageModel> load(WeightKind weights = WeightKind::f32) const {
    return load_model(path(), {.weights = weights, .n_threads = 2});
  }
  Rows logits() const {
    const auto model = load();
    const auto sequence = model->open({});
    return test::run_block(*model, *sequence, ids_);
  }
  std::string refusal() const {
    try {
      (void)load();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

 private:
  test::TemporaryDirectory directory_;
  std::vector<TokenId> ids_;
};

// Files of the model without its head, such as GPT-2's first ones, omit the prefix of names.
TEST(GptFamilies, NamesMayLackTheirPrefix) {
  for (const auto& [name, prefix] :
       {std::pair{"gpt2_plain", "\"transformer."}, std::pair{"gpt_neox_parallel", "\"gpt_neox."}}) {
    const ChangedModel model(name);
    const Rows expected = model.logits();
    model.rename(prefix, "\"");
    EXPECT_TRUE(model.load()->warnings().empty()) << name;
    test::expect_same_bits(expected, 0, model.logits());
  }
}

TEST(GptFamilies, AWeightOfALayerThatNothingReadsIsRefused) {
  for (const char* prefix : {"transformer.", ""}) {
    const ChangedModel model("gpt2_plain");
    if (*prefix == '\0') model.rename("\"transformer.", "\"");
    // Of three layers the last is renamed to nothing, and leaves one weight to the second.
    model.set("n_layer", 2);
    const auto warnings = model.load()->warnings();
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("h.2."), std::string::npos) << warnings[0];
    model.rename("h.2.ln_1.weight", "h.1.ln_3.weight");
    const std::string named = fmt::format("{}h.1.ln_3.weight", prefix);
    EXPECT_NE(model.refusal().find(named), std::string::npos) << model.refusal();
  }
}

// Square matrices, and one that is three times as wide, are refused if stored transposed.
TEST(GptFamilies, MatricesAreStoredTurned) {
  const ChangedModel model("gpt2_plain");
  model.rename("[32,96]", "[96,32]");
  const std::string message = model.refusal();
  EXPECT_NE(message.find("c_attn.weight of shape (32, 96)"), std::string::npos) << message;
}

TEST(GptFamilies, TheTableOfPositionsIsAsLongAsTheContext) {
  const ChangedModel model("gpt2_plain");
  model.set("n_positions", 257);
  const std::string message = model.refusal();
  EXPECT_NE(message.find("wpe.weight of shape (257, 32)"), std::string::npos) << message;
}

TEST(GptFamilies, ScoresMayBeLeftUnscaled) {
  const ChangedModel model("gpt2_plain");
  const Rows expected = model.logits();
  model.set("scale_attn_weights", true);  // the default
  test::expect_same_bits(expected, 0, model.logits());
  model.set("scale_attn_weights", false);
  EXPECT_FALSE(test::same_bits(expected.back(), model.logits().back()));
}

TEST(GptFamilies, UnknownActivationsAreNamed) {
  for (const auto& [name, key] : {std::pair{"gpt2_plain", "activation_function"},
                                  std::pair{"gpt_neox_parallel", "hidden_act"}}) {
    const ChangedModel model(name);
    model.set(key, "relu");
    const std::string message = model.refusal();
    EXPECT_NE(message.find(key), std::string::npos) << message;
    EXPECT_NE(message.find("gelu_new"), std::string::npos) << message;
    EXPECT_NE(message.find("relu"), std::string::npos) << message;
  }
}

// The first feature includes the position; the last is normalised as the head reads it, with the
// bias.
TEST(GptFamilies, FeaturesBeginWithPositionsAndEndWithTheNorm) {
  for (const auto& [name, width] :
       {std::pair{"gpt2_plain", 32}, std::pair{"gpt_neox_parallel", 48}}) {
    const ChangedModel changed(name);
    for (const WeightKind kind : {WeightKind::f32, WeightKind::bf16, WeightKind::int8}) {
      const auto model = changed.load(kind);
      const auto sequence = model->open({});
      const auto dim = static_cast<std::size_t>(width);
      const auto run = [&](int layer) {
        const auto other = model->open({});
        const TokenBlock block{other.get(), changed.ids(), {}};
        ForwardOutput output;
        model->forward({&block, 1}, {.feature_layers = {&layer, 1}}, output);
        return output;
      };
      const ForwardOutput first = run(0);
      std::vector<float> expected(changed.ids().size() * dim);
      model->embed(changed.ids(), expected);
      if (name == std::string("gpt2_plain")) {
        const auto source = open_safetensors(changed.path() / "model.safetensors");
        const TensorView* table = source->find("transformer.wpe.weight");
        std::vector<float> positions(expected.size());
        decode_rows(*table, 0, static_cast<std::int64_t>(changed.ids().size()), positions);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += positions[i];
      }
      EXPECT_EQ(
          std::memcmp(first.features.data(), expected.data(), expected.size() * sizeof(float)), 0)
          << name;
      const ForwardOutput last = run(model->config().n_layers);
      ForwardOutput projected;
      model->project(std::span(last.features).first(expected.size()), projected);
      test::expect_same_bits(test::rows_of(last), 0, test::rows_of(projected));
    }
  }
}

// A pass without the last layer equals the model that ends before it.
TEST(GptFamilies, LayersCanBeLeftOut) {
  for (const auto& [name, key] :
       {std::pair{"gpt2_plain", "n_layer"}, std::pair{"gpt_neox_parallel", "num_hidden_layers"}}) {
    const ChangedModel changed(name);
    const auto whole = changed.load();
    const auto sequence = whole->open({});
    const int last[] = {2};
    const TokenBlock block{sequence.get(), changed.ids(), {}};
    ForwardOutput output;
    whole->forward({&block, 1}, {.skip_layers = last}, output);
    changed.set(key, 2);
    test::expect_same_bits(changed.logits(), 0, test::rows_of(output));
  }
}

TEST(GptFamilies, CountEveryNumberOfTheirFiles) {
  for (const char* name :
       {"gpt2_plain", "gpt2_odd", "gpt_neox_parallel", "gpt_neox_sequential", "gpt_neox_whole"}) {
    const ChangedModel model(name);
    const auto source = open_safetensors(model.path() / "model.safetensors");
    std::int64_t n_stored = 0;
    for (const TensorView& tensor : source->tensors()) n_stored += tensor.n_elements();
    const Footprint footprint = model.load()->footprint();
    EXPECT_EQ(footprint.n_parameters, n_stored) << name;
    EXPECT_EQ(footprint.weights, "f32");
  }
}

// The share of a head that rotates, in all its spellings.
TEST(GptFamilies, APartOfAHeadTurns) {
  const auto rotated = [](const nlohmann::json& change) {
    const ChangedModel model("gpt_neox_parallel");  // heads of 16
    for (const auto& [key, value] : change.items()) model.set(key.c_str(), value);
    const ModelConfig config = read_config_json(model.path());
    EXPECT_EQ(rope_frequencies(config).size(), static_cast<std::size_t>(config.rotated_dim()) / 2);
    return config.rotated_dim();
  };
  EXPECT_EQ(rotated({}), 4);
  EXPECT_EQ(rotated({{"rotary_pct", 0.5}}), 8);
  EXPECT_EQ(rotated({{"rotary_pct", 1.0}}), 16);
  EXPECT_EQ(rotated({{"rotary_pct", nullptr}}), 4);  // transformers' default
  EXPECT_EQ(
      rotated({{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.75}}}}),
      12);
  EXPECT_EQ(rotated({{"partial_rotary_factor", 0.5}}), 8);
  for (const double share : {0.0, -0.5, 1.5, 0.07, 0.2}) {  // of the last two: 1 and 3 elements
    EXPECT_THROW((void)rotated({{"rotary_pct", share}}), Error) << share;
  }
  // yarn's magnitude scales only the rotated part.
  EXPECT_THROW((void)rotated({{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4.0}}}}), Error);
  EXPECT_EQ(rotated({{"rope_scaling",
                      {{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 1.0}}}}),
            4);
}

}  // namespace
}  // namespace outrider
