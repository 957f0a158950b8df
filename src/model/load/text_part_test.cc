// SPDX-License-Identifier: Apache-2.0
// A multimodal directory loads as its text part. Golden models in the layouts that transformers 4
// and 5 write for text_part.cc's classes have the bits of the plain directories.
#include "model/load/text_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "io/safetensors/safetensors_writer.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Whole {
  const char* golden;  // the golden model of its text part
  const char* class_name;
  const char* model_type;
};

fs::path golden(const Whole& whole) {
  return fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / whole.golden;
}

// A layout's prefixes for a text model's "model." and "lm_head.".
struct Layout {
  const char* model;
  const char* head;
};
constexpr Layout kLayouts[] = {{"language_model.model.", "language_model.lm_head."},
                               {"model.language_model.", "lm_head."}};

std::string name_in(const Layout& layout, std::string_view name) {
  for (const auto& [plain, prefix] :
       {std::pair("model.", layout.model), std::pair("lm_head.", layout.head)}) {
    if (name.starts_with(plain)) return prefix + std::string(name.substr(std::strlen(plain)));
  }
  ADD_FAILURE() << name;
  return {};
}

// Adds an image tensor beside those of the text.
void write_whole(const Whole& whole, const Layout& layout, const fs::path& directory) {
  const auto source = open_safetensors(golden(whole) / "model.safetensors");
  std::vector<std::vector<float>> values;
  values.reserve(source->tensors().size());
  std::vector<NamedValues> named;
  for (const TensorView& tensor : source->tensors()) {
    values.emplace_back(static_cast<std::size_t>(tensor.n_elements()));
    const std::int64_t n_rows = tensor.n_elements() / tensor.shape.back();
    decode_rows(tensor, 0, n_rows, values.back());
    named.push_back(
        {.name = name_in(layout, tensor.name), .shape = tensor.shape, .values = values.back()});
  }
  const std::vector<float> image(6, 1.0F);
  named.push_back({.name = "vision_tower.patch.weight", .shape = {2, 3}, .values = image});
  write_safetensors(directory / "model.safetensors", named, ElementType::bf16);
  json text = json::parse(std::ifstream(golden(whole) / "config.json"));
  text.erase("architectures");
  text.erase("eos_token_id");
  json config = {{"architectures", {whole.class_name}},
                 {"model_type", whole.model_type},
                 {"eos_token_id", {2, 7}},
                 {"vision_config", {{"hidden_size", 3}}},
                 {"text_config", text}};
  if (text.contains("tie_word_embeddings")) {
    config["tie_word_embeddings"] = text["tie_word_embeddings"];
  }
  std::ofstream(directory / "config.json") << config.dump();
}

class TextPart : public ::testing::TestWithParam<Whole> {};

TEST_P(TextPart, HasTheBitsOfThePlainDirectory) {
  const Whole& whole = GetParam();
  const LoadOptions options{.weights = WeightKind::f32, .n_threads = 1};
  const auto plain = load_model(golden(whole), options);
  // Longer than windows and original contexts.
  std::vector<TokenId> tokens;
  for (int copy = 0; copy < 4; ++copy) {
    for (const TokenId token : {5, 9, 33, 12, 60, 3, 3, 71, 8, 40, 22, 17}) {
      tokens.push_back(token);
    }
  }
  const auto sequence = plain->open({});
  const test::Rows expected = test::run_block(*plain, *sequence, tokens);
  for (const Layout& layout : kLayouts) {
    SCOPED_TRACE(layout.model);
    const test::TemporaryDirectory directory;
    write_whole(whole, layout, directory.path());
    const auto part = load_model(directory.path(), options);
    const auto of_part = part->open({});
    test::expect_same_bits(expected, 0, test::run_block(*part, *of_part, tokens));
    EXPECT_EQ(part->config().end_tokens, (std::vector<TokenId>{2, 7}));
    ASSERT_EQ(part->warnings().size(), 1u);  // and no warning about the image's weights
    EXPECT_THAT(part->warnings()[0], HasSubstr("its text part alone"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, TextPart,
    ::testing::Values(Whole{"gemma3_one_in_three", "Gemma3ForConditionalGeneration", "gemma3"},
                      Whole{"gemma4_shared", "Gemma4ForConditionalGeneration", "gemma4"},
                      Whole{"ministral3_scaled", "Mistral3ForConditionalGeneration", "mistral3"},
                      Whole{"ministral3_tied", "Mistral3ForConditionalGeneration", "mistral3"},
                      Whole{"mistral_whole", "Mistral3ForConditionalGeneration", "mistral3"},
                      Whole{"qwen3_5_grouped", "Qwen3_5ForConditionalGeneration", "qwen3_5"},
                      Whole{"qwen3_5_moe_stacked", "Qwen3_5MoeForConditionalGeneration",
                            "qwen3_5_moe"}),
    [](const auto& info) { return std::string(info.param.golden); });

// As in the published Gemma 3 4B's config.json, which omits defaults.
TEST(TextConfig, LeavesDefaultsToTransformers) {
  const json whole = {
      {"architectures", {"Gemma3ForConditionalGeneration"}},
      {"eos_token_id", {1, 106}},
      {"text_config",
       {{"model_type", "gemma3_text"}, {"hidden_size", 2560}, {"num_hidden_layers", 34}}}};
  const auto text = text_config_of(whole, "config.json");
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ((*text)["hidden_size"], 2560);
  EXPECT_EQ((*text)["num_attention_heads"], 8);
  EXPECT_EQ((*text)["vocab_size"], 262208);
  EXPECT_EQ((*text)["eos_token_id"], (json{1, 106}));
  EXPECT_EQ((*text)["tie_word_embeddings"], true);
}

// Mistral3Config and its text part's classes in transformers 5.12.1.
TEST(TextConfig, HasMistralsDefaults) {
  const auto text_of = [](const json& text) {
    return *text_config_of({{"architectures", {"Mistral3ForConditionalGeneration"}},
                            {"tie_word_embeddings", false},
                            {"text_config", text}},
                           "config.json");
  };
  const json mistral = text_of({{"rms_norm_eps", 1e-5}});
  EXPECT_EQ(mistral["model_type"], "mistral");
  EXPECT_EQ(mistral["vocab_size"], 32000);
  EXPECT_EQ(mistral["rms_norm_eps"], 1e-5);
  EXPECT_EQ(mistral["tie_word_embeddings"], false);
  const json ministral = text_of({{"model_type", "ministral3"}, {"tie_word_embeddings", true}});
  EXPECT_EQ(ministral["num_hidden_layers"], 34);
  EXPECT_EQ(ministral["rope_parameters"]["original_max_position_embeddings"], 16384);
  EXPECT_EQ(ministral["tie_word_embeddings"], true);
  const json named = {{"rope_type", "yarn"}, {"factor", 2}};
  EXPECT_EQ(text_of({{"model_type", "ministral3"}, {"rope_parameters", named}})["rope_parameters"],
            named);
  EXPECT_FALSE(
      text_of({{"model_type", "ministral3"}, {"rope_scaling", named}}).contains("rope_parameters"));
}

// Qwen3_5Config and its text part, with a config.json that names nothing.
TEST(TextConfig, HasQwensDefaults) {
  const json text = *text_config_of(
      {{"architectures", {"Qwen3_5ForConditionalGeneration"}}, {"text_config", json::object()}},
      "config.json");
  EXPECT_EQ(text["model_type"], "qwen3_5_text");
  EXPECT_EQ(text["num_hidden_layers"], 32);
  EXPECT_EQ(text["tie_word_embeddings"], false);
  const json moe = *text_config_of({{"architectures", {"Qwen3_5MoeForConditionalGeneration"}},
                                    {"tie_word_embeddings", true},
                                    {"text_config", json::object()}},
                                   "config.json");
  EXPECT_EQ(moe["num_experts"], 256);
  EXPECT_EQ(moe["tie_word_embeddings"], true);
}

TEST(TextConfig, OtherClassesAreNamed) {
  EXPECT_FALSE(text_config_of({{"model_type", "llama"}}, "config.json").has_value());
  EXPECT_FALSE(text_config_of({{"text_config", nullptr}}, "config.json").has_value());
  const auto reading = [](const json& config) {
    return [config] { (void)text_config_of(config, "config.json"); };
  };
  EXPECT_THAT(reading({{"architectures", {"LlavaForConditionalGeneration"}},
                       {"text_config", json::object()}}),
              ThrowsMessage<Error>(HasSubstr("LlavaForConditionalGeneration")));
  EXPECT_THAT(reading({{"architectures", {"Gemma3ForConditionalGeneration"}}, {"text_config", 3}}),
              ThrowsMessage<Error>(HasSubstr("text_config to be an object")));
}

}  // namespace
}  // namespace outrider
