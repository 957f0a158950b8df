// A multimodal directory is its text part: the golden Gemma 3 put into the layouts that
// transformers 4 and 5 write for Gemma3ForConditionalGeneration has the bits of the plain
// directory.
#include "model/load/text_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "io/safetensors_writer.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/run_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

fs::path golden() {
  return fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "gemma3_one_in_three";
}
json golden_config() { return json::parse(std::ifstream(golden() / "config.json")); }

// "model." of the text model's names becomes `prefix`; an image's tensor stands beside them.
void write_whole(const std::string& prefix, const fs::path& directory) {
  const auto source = open_safetensors(golden() / "model.safetensors");
  std::vector<std::vector<float>> values;
  values.reserve(source->tensors().size());
  std::vector<NamedValues> named;
  for (const TensorView& tensor : source->tensors()) {
    values.emplace_back(static_cast<std::size_t>(tensor.n_elements()));
    const std::int64_t n_rows = tensor.shape.size() == 1 ? 1 : tensor.shape[0];
    decode_rows(tensor, 0, n_rows, values.back());
    ASSERT_TRUE(tensor.name.starts_with("model.")) << tensor.name;
    named.push_back(
        {.name = prefix + tensor.name.substr(6), .shape = tensor.shape, .values = values.back()});
  }
  const std::vector<float> image(6, 1.0F);
  named.push_back({.name = "vision_tower.patch.weight", .shape = {2, 3}, .values = image});
  write_safetensors(directory / "model.safetensors", named, ElementType::bf16);
  json config = golden_config();
  config.erase("architectures");
  config.erase("eos_token_id");
  const json whole = {{"architectures", {"Gemma3ForConditionalGeneration"}},
                      {"model_type", "gemma3"},
                      {"eos_token_id", {2, 7}},
                      {"vision_config", {{"hidden_size", 3}}},
                      {"text_config", config}};
  std::ofstream(directory / "config.json") << whole.dump();
}

TEST(TextPart, HasTheBitsOfThePlainDirectory) {
  const LoadOptions options{.weights = WeightKind::f32, .n_threads = 1};
  const auto plain = load_model(golden(), options);
  const std::vector<TokenId> tokens = {5, 9, 33, 12, 60, 3, 3, 71, 8, 40, 22, 17};
  const auto sequence = plain->open({});
  const testing::Rows expected = testing::run_block(*plain, *sequence, tokens);
  for (const char* prefix : {"language_model.model.", "model.language_model."}) {
    SCOPED_TRACE(prefix);
    const testing::TemporaryDirectory directory;
    write_whole(prefix, directory.path());
    const auto part = load_model(directory.path(), options);
    const auto of_part = part->open({});
    testing::expect_same_bits(expected, 0, testing::run_block(*part, *of_part, tokens));
    EXPECT_EQ(part->config().end_tokens, (std::vector<TokenId>{2, 7}));
    ASSERT_EQ(part->warnings().size(), 1u);  // and none of the image's weights
    EXPECT_THAT(part->warnings()[0], HasSubstr("its text part alone"));
  }
}

// As the published 4B's config.json, which names what is not the default.
TEST(TextPart, LeavesDefaultsToTransformers) {
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
}

TEST(TextPart, OtherClassesAreNamed) {
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
