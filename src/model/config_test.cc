// SPDX-License-Identifier: Apache-2.0
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/test_files.h"
#include "model/config_section.h"
#include "model/load_model.h"
#include "outrider/error.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

Json good_config() { return Json::parse(test::config_json({})); }

ModelConfig read(const Json& config) {
  const test::TemporaryDirectory directory;
  write(directory.path() / "config.json", config.dump());
  return read_config_json(directory.path());
}

// Bare words as Python writes them, outside of strings only; transformers 5 writes the object.
TEST(ParseConfig, KnowsNumbersThatJsonDoesNotHave) {
  const test::TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "config.json";
  write(file, R"({"a": [0.0, Infinity, -Infinity, NaN], "say \"NaN": "Infinity", "b\\": NaN})");
  const auto number = [](const char* name) { return Json{{"__float__", name}}; };
  const Json expected = {{"a", {0.0, number("Infinity"), number("-Infinity"), number("NaN")}},
                         {"say \"NaN", "Infinity"},
                         {"b\\", number("NaN")}};
  EXPECT_EQ(parse_config(file), expected);
}

TEST(ReadConfigJson, ReadsOldSpellings) {
  const ModelConfig config = read(good_config());
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.vocabulary_size, 300);
  EXPECT_EQ(config.context_length, 256);
  EXPECT_EQ(config.n_layers, 2);
  EXPECT_EQ(config.dim, 64);
  EXPECT_EQ(config.n_heads, 4);
  EXPECT_EQ(config.n_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.hidden_dim, 96);
  EXPECT_EQ(config.norm_epsilon, 1e-5F);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_EQ(config.rope.scaling, RopeConfig::Scaling::none);
  EXPECT_FALSE(config.tied_head);
  EXPECT_EQ(config.bos_token, 0);
  EXPECT_EQ(config.end_tokens, std::vector<TokenId>{1});
}

// transformers 4.57, modeling_rope_utils: dynamic NTK does not change frequencies up to
// max_position_embeddings, and contexts here are not longer.
TEST(ReadConfigJson, DynamicRopeIsPlainWithinTheTrainedContext) {
  const std::vector<double> plain = rope_frequencies(read(good_config()));
  for (const char* kind_key : {"type", "rope_type"}) {
    for (const double factor : {2.0, 8.0}) {
      Json json = good_config();
      json["rope_scaling"] = {{kind_key, "dynamic"}, {"factor", factor}};
      const ModelConfig config = read(json);
      EXPECT_EQ(rope_frequencies(config), plain);
      EXPECT_EQ(config.context_length, 256);
    }
  }
  // A base changed by "alpha" means something else (Hunyuan).
  Json alpha = good_config();
  alpha["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 1.0}, {"alpha", 1000.0}};
  EXPECT_THROW(read(alpha), Error);
  Json without = good_config();
  without["rope_scaling"] = {{"rope_type", "dynamic"}};
  EXPECT_THROW(read(without), Error);
}

TEST(ReadConfigJson, ReadsEverySpellingOfRope) {
  const Json scaling = {{"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  for (const char* kind_key : {"type", "rope_type"}) {
    for (const char* section : {"rope_scaling", "rope_parameters"}) {
      Json json = good_config();
      json.erase("rope_scaling");
      json[section] = scaling;
      json[section][kind_key] = "llama3";
      json["rope_theta"] = 500000.0;
      if (std::string(section) == "rope_parameters") {
        json.erase("rope_theta");
        json[section]["rope_theta"] = 500000.0;
      }
      const RopeConfig rope = read(json).rope;
      EXPECT_EQ(rope.scaling, RopeConfig::Scaling::llama3);
      EXPECT_EQ(rope.theta, 500000);
      EXPECT_EQ(rope.factor, 8);
      EXPECT_EQ(rope.low_frequency_factor, 1);
      EXPECT_EQ(rope.high_frequency_factor, 4);
      EXPECT_EQ(rope.original_context, 8192);
    }
  }
  Json json = good_config();
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 2000}};
  EXPECT_EQ(read(json).rope.theta, 2000);
  EXPECT_EQ(read(json).rope.scaling, RopeConfig::Scaling::none);
  // If both are present the old spelling decides, with the new one's base if it has none.
  json["rope_scaling"] = {{"rope_type", "linear"}, {"factor", 3}};
  EXPECT_EQ(read(json).rope.theta, 2000);
  EXPECT_EQ(read(json).rope.scaling, RopeConfig::Scaling::linear);
  EXPECT_EQ(read(json).rope.factor, 3);
}

TEST(ReadConfigJson, FillsInWhatFilesLeaveOut) {
  Json json = good_config();
  for (const char* key : {"head_dim", "num_key_value_heads", "tie_word_embeddings", "hidden_act",
                          "rope_theta", "rope_scaling", "attention_bias", "mlp_bias", "torch_dtype",
                          "eos_token_id", "bos_token_id", "architectures"}) {
    json.erase(key);
  }
  const ModelConfig config = read(json);
  EXPECT_EQ(config.head_dim, 16);
  EXPECT_EQ(config.n_kv_heads, 4);
  EXPECT_EQ(config.rope.theta, 10000);
  EXPECT_EQ(config.bos_token, kNoToken);
  EXPECT_TRUE(config.end_tokens.empty());
}

TEST(ReadConfigJson, GenerationConfigAddsEndTokens) {
  const test::TemporaryDirectory directory;
  write(directory.path() / "config.json", good_config().dump());
  write(directory.path() / "generation_config.json", R"({"eos_token_id": [7, 9, 11]})");
  const ModelConfig config = read_config_json(directory.path());
  const auto named = good_config().at("eos_token_id").get<TokenId>();
  std::vector<TokenId> ends = {named};
  for (const TokenId token : {7, 9, 11}) {
    if (token != named) ends.push_back(token);
  }
  EXPECT_EQ(config.end_tokens, ends);
  EXPECT_EQ(config.bos_token, 0);
  write(directory.path() / "generation_config.json", "[1]");
  EXPECT_THROW(read_config_json(directory.path()), Error);
  // A dangling link, left by an interrupted download, is not a missing file.
  std::filesystem::remove(directory.path() / "generation_config.json");
  std::filesystem::create_symlink("nowhere", directory.path() / "generation_config.json");
  EXPECT_THROW(read_config_json(directory.path()), Error);
}

// As llama.cpp does for GGUF files with such ids.
TEST(ReadConfigJson, IdsOutsideTheVocabularyAreIgnoredWithAWarning) {
  const test::TemporaryDirectory directory;
  Json json = good_config();
  const int n_tokens = json.at("vocab_size").get<int>();
  json["bos_token_id"] = -5;
  json["eos_token_id"] = {1, n_tokens};
  write(directory.path() / "config.json", json.dump());
  const ModelConfig alone = read_config_json(directory.path());
  EXPECT_EQ(alone.bos_token, kNoToken);
  EXPECT_EQ(alone.end_tokens, std::vector<TokenId>{1});
  ASSERT_EQ(alone.warnings.size(), 2u);
  EXPECT_NE(alone.warnings[0].find("/config.json: bos_token_id is -5"), std::string::npos);
  EXPECT_NE(alone.warnings[1].find("eos_token_id is " + std::to_string(n_tokens)),
            std::string::npos);
  write(directory.path() / "generation_config.json",
        R"({"bos_token_id": 99999, "eos_token_id": [2, -1]})");
  const ModelConfig both = read_config_json(directory.path());
  EXPECT_EQ(both.bos_token, kNoToken);
  EXPECT_EQ(both.end_tokens, (std::vector<TokenId>{1, 2}));
  ASSERT_EQ(both.warnings.size(), 4u);
  EXPECT_NE(both.warnings[2].find("generation_config.json: bos_token_id is 99999"),
            std::string::npos);
}

// Each case breaks one key; the message names it.
struct Broken {
  const char* key;
  const char* value;  // JSON; empty: the key is removed
  const char* named;
};

class BrokenConfig : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenConfig, IsOneClearError) {
  Json json = good_config();
  if (std::string(GetParam().value).empty()) {
    json.erase(GetParam().key);
  } else {
    json[GetParam().key] = Json::parse(GetParam().value);
  }
  try {
    read(json);
    FAIL() << "was read";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("config.json"), std::string::npos) << message;
    EXPECT_NE(message.find(GetParam().named), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, BrokenConfig,
    ::testing::Values(
        Broken{"vocab_size", "", "vocab_size"}, Broken{"vocab_size", "0", "vocabulary size"},
        Broken{"vocab_size", "\"300\"", "vocab_size"}, Broken{"vocab_size", "300.5", "vocab_size"},
        Broken{"vocab_size", "1e3", "vocab_size"},
        Broken{"vocab_size", "99999999999999999999", "vocab_size"},
        Broken{"vocab_size", "18446744073709551615", "vocab_size"},
        Broken{"vocab_size", "-9223372036854775808", "vocab_size"},
        Broken{"vocab_size", "2000000000", "vocabulary size"},
        Broken{"hidden_size", "", "hidden_size"}, Broken{"hidden_size", "-64", "hidden size"},
        Broken{"hidden_size", "null", "hidden_size"},
        Broken{"num_hidden_layers", "0", "number of layers"},
        Broken{"num_hidden_layers", "1000000", "number of layers"},
        Broken{"num_attention_heads", "0", "attention heads"},
        Broken{"num_attention_heads", "[4]", "num_attention_heads"},
        Broken{"num_key_value_heads", "3", "key-value heads"},
        Broken{"num_key_value_heads", "8", "key-value heads"},
        Broken{"num_key_value_heads", "-2", "key-value heads"}, Broken{"head_dim", "15", "even"},
        Broken{"head_dim", "0", "head dimension"}, Broken{"head_dim", "-16", "head dimension"},
        Broken{"intermediate_size", "", "interm"},
        Broken{"max_position_embeddings", "", "max_position"},
        Broken{"max_position_embeddings", "0", "context length"},
        Broken{"rms_norm_eps", "", "rms_norm_eps"}, Broken{"rms_norm_eps", "0", "norm epsilon"},
        Broken{"rms_norm_eps", "-1e-5", "norm epsilon"},
        Broken{"rms_norm_eps", "true", "rms_norm_eps"}, Broken{"rope_theta", "0", "rope theta"},
        Broken{"rope_theta", "\"x\"", "rope_theta"}, Broken{"rope_theta", "1e300", "rope theta"},
        Broken{"rope_scaling", "{\"type\": \"spiral\", \"factor\": 2}", "linear, llama3"},
        Broken{"rope_scaling", "{\"type\": \"longrope\", \"short_factor\": [1]}", "long_factor"},
        Broken{"rope_scaling", "{\"type\": \"yarn\", \"factor\": 0}", "rope factor"},
        Broken{"rope_scaling", "{\"type\": \"yarn\", \"factor\": 2, \"beta_fast\": -1}",
               "beta_fast"},
        Broken{"rope_scaling", "{\"type\": \"linear\"}", "rope_scaling.factor"},
        Broken{"rope_scaling", "{\"type\": \"linear\", \"factor\": 0}", "rope factor"},
        Broken{"rope_scaling", "{\"type\": 3}", "rope_scaling.type"},
        Broken{"rope_scaling", "{\"rope_type\": \"llama3\", \"factor\": 8}", "low_freq_factor"},
        Broken{"rope_scaling",
               "{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
               "\"high_freq_factor\": 4, \"original_max_position_embeddings\": 8}",
               "below high_freq_factor"},
        Broken{"rope_scaling", "[]", "an object"},
        Broken{"rope_parameters", "{\"partial_rotary_factor\": 0.5}", "partial_rotary_factor"},
        Broken{"partial_rotary_factor", "0.5", "partial_rotary_factor"},
        Broken{"model_type", "\"mastral\"", "llama"},
        Broken{"architectures", "[\"GPT2LMHeadModel\"]", "LlamaForCausalLM"},
        Broken{"architectures", "\"LlamaForCausalLM\"", "architectures"},
        Broken{"hidden_act", "\"gelu\"", "silu"}, Broken{"hidden_act", "1", "hidden_act"},
        Broken{"quantization_config", "{\"quant_method\": \"gptq\"}", "quantization_config"},
        Broken{"tie_word_embeddings", "1", "tie_word_embeddings"},
        Broken{"attention_bias", "\"no\"", "attention_bias"},
        Broken{"eos_token_id", "[\"</s>\"]", "eos_token_id"},
        Broken{"bos_token_id", "1.5", "bos_token"}));

TEST(ReadConfigJson, RefusesWhatIsNoConfig) {
  const test::TemporaryDirectory directory;
  EXPECT_THROW(read_config_json(directory.path()), Error);  // no file
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"),
        std::string("{\"vocab_size\": 1"), std::string("\xff\xfe{}"), std::string(5000, '['),
        std::string(2 << 20, ' '), std::string("{}")}) {
    write(directory.path() / "config.json", text);
    EXPECT_THROW(read_config_json(directory.path()), Error) << text.substr(0, 20);
  }
}

// Frequencies compared with the formulas in libm: both err by a few 2^-53 of the exponent.
TEST(RopeFrequencies, FollowTheFormulas) {
  ModelConfig config;
  config.head_dim = 128;
  config.rope.theta = 500000;
  const auto plain = [](int i) { return std::pow(500000.0, -2.0 * i / 128); };
  std::vector<double> frequencies = rope_frequencies(config);
  ASSERT_EQ(frequencies.size(), 64u);
  for (int i = 0; i < 64; ++i) {
    EXPECT_NEAR(frequencies[static_cast<std::size_t>(i)], plain(i), 1e-14 * plain(i));
  }
  EXPECT_EQ(frequencies[0], 1);

  config.rope.scaling = RopeConfig::Scaling::llama3;
  config.rope.factor = 8;
  config.rope.low_frequency_factor = 1;
  config.rope.high_frequency_factor = 4;
  config.rope.original_context = 8192;
  frequencies = rope_frequencies(config);
  int n_blended = 0;
  for (int i = 0; i < 64; ++i) {
    const double wavelength = 2 * std::numbers::pi / plain(i);
    double expected = plain(i);
    if (wavelength > 8192) {
      expected /= 8;
    } else if (wavelength > 2048) {
      const double smooth = (8192 / wavelength - 1) / 3;
      expected = (1 - smooth) * plain(i) / 8 + smooth * plain(i);
      ++n_blended;
    }
    EXPECT_NEAR(frequencies[static_cast<std::size_t>(i)], expected, 1e-14 * plain(i));
  }
  EXPECT_GT(n_blended, 2);

  config.rope = {};
  config.rope.scaling = RopeConfig::Scaling::longrope;
  config.rope.original_context = 4096;
  config.rope.divisors.assign(32, 2.0F);
  config.rope.long_divisors.assign(32, 4.0F);
  config.rope.magnitude = 1.5F;
  config.rotary_dim = 64;
  const RopeTable table = rope_table(config);
  EXPECT_EQ(table.frequencies.size(), 32u);
  EXPECT_EQ(table.frequencies[0], 0.5);
  EXPECT_EQ(table.long_frequencies[0], 0.25);
  EXPECT_EQ(table.magnitude, 1.5F);
  EXPECT_TRUE(table.is_short(4096));
  EXPECT_FALSE(table.is_short(4097));

  config.rope = {};
  config.rotary_dim = 0;
  EXPECT_FALSE(rope_table(config).is_short(1));  // all texts have the same angles
  config.rope.divisors.assign(64, 2.0F);
  frequencies = rope_frequencies(config);
  EXPECT_EQ(frequencies[0], 0.5);
}

// Ministral 3's scale of queries, with the published numbers, by libm.
TEST(RopeTable, ScalesQueriesByTheirPosition) {
  ModelConfig config;
  config.head_dim = 128;
  config.rope.query_beta = 0.1;
  config.rope.original_context = 16384;
  const RopeTable table = rope_table(config);
  for (const auto& [position, n_contexts] :
       {std::pair(0, 0), {16383, 0}, {16384, 1}, {49151, 2}, {262143, 15}}) {
    EXPECT_FLOAT_EQ(table.query_scale(position), 1 + 0.1F * std::log(1.0F + n_contexts));
  }
  EXPECT_FALSE(table.is_short(1));
}

// transformers 5 writes the original context beside yarn's and longrope's section. If both exist
// they agree.
TEST(ReadConfigJson, KnowsTheOriginalContextBesideItsSection) {
  Json json = good_config();
  json["max_position_embeddings"] = 4096;
  json["original_max_position_embeddings"] = 512;
  json["rope_scaling"] = {{"rope_type", "yarn"}, {"factor", 8}};
  EXPECT_EQ(read(json).rope.original_context, 512);
  json["rope_scaling"]["original_max_position_embeddings"] = 512;
  EXPECT_EQ(read(json).rope.original_context, 512);
  json["rope_scaling"]["original_max_position_embeddings"] = 1024;
  EXPECT_THROW((void)read(json), Error);
}

// llama.cpp (LLAMA_MAX_LAYERS arrays of n_head, n_head_kv and n_ff) writes one number per layer if
// layers may differ. Equal numbers count as one.
TEST(ReadConfigGguf, AnArrayOfEqualNumbersIsTheNumber) {
  const test::TemporaryDirectory directory;
  const auto read_with = [&](const char* key, const std::vector<std::int32_t>& numbers) {
    test::Gguf file;
    file.text("general.architecture", "llama")
        .value("llama.vocab_size", test::kU32, 300U)
        .value("llama.context_length", test::kU32, 64U)
        .value("llama.block_count", test::kU32, 3U)
        .value("llama.embedding_length", test::kU32, 64U)
        .value("llama.attention.layer_norm_rms_epsilon", test::kF32, 1e-5F);
    for (const auto& [name, number] : {std::pair("llama.attention.head_count", 4U),
                                       std::pair("llama.attention.head_count_kv", 2U),
                                       std::pair("llama.feed_forward_length", 96U)}) {
      if (std::string_view(key) != name) file.value(name, test::kU32, number);
    }
    file.array(key, test::kI32, numbers);
    const test::Bytes bytes = file.bytes();
    write(directory.path() / "model.gguf",
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return read_config_gguf(*open_gguf(directory.path() / "model.gguf"));
  };
  EXPECT_EQ(read_with("llama.attention.head_count", {8, 8, 8}).n_heads, 8);
  EXPECT_EQ(read_with("llama.attention.head_count_kv", {1, 1, 1}).n_kv_heads, 1);
  EXPECT_EQ(read_with("llama.feed_forward_length", {128, 128, 128}).hidden_dim, 128);
  // OpenELM's and DeciLM's files have numbers that differ between layers. No family here does.
  for (const char* key : {"llama.attention.head_count", "llama.attention.head_count_kv",
                          "llama.feed_forward_length"}) {
    for (const std::vector<std::int32_t>& numbers :
         {std::vector<std::int32_t>{4, 2, 4}, std::vector<std::int32_t>{}}) {
      try {
        (void)read_with(key, numbers);
        ADD_FAILURE() << "no Error";
      } catch (const Error& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find(std::string(key) + " to be one number"), std::string::npos)
            << message;
      }
    }
  }
}

// llama.cpp's converter names the text parts of Mistral Small 3 and of Ministral 3 mistral3. The
// numbers are those of Ministral 3's published files.
TEST(ReadConfigGguf, KnowsBothOfMistral3) {
  const test::TemporaryDirectory directory;
  const auto read_with = [&](const auto& add) {
    test::Gguf file;
    file.text("general.architecture", "mistral3")
        .value("mistral3.vocab_size", test::kU32, 300U)
        .value("mistral3.context_length", test::kU32, 262144U)
        .value("mistral3.block_count", test::kU32, 1U)
        .value("mistral3.embedding_length", test::kU32, 64U)
        .value("mistral3.feed_forward_length", test::kU32, 96U)
        .value("mistral3.attention.head_count", test::kU32, 4U)
        .value("mistral3.attention.layer_norm_rms_epsilon", test::kF32, 1e-5F);
    add(file);
    const test::Bytes bytes = file.bytes();
    write(directory.path() / "model.gguf",
          {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return read_config_gguf(*open_gguf(directory.path() / "model.gguf")).rope;
  };
  const auto scaled = [](test::Gguf& file, float weight) -> test::Gguf& {
    return file.text("mistral3.rope.scaling.type", "yarn")
        .value("mistral3.rope.scaling.factor", test::kF32, 16.0F)
        .value("mistral3.rope.scaling.original_context_length", test::kU32, 16384U)
        .value("mistral3.rope.scaling.yarn_log_multiplier", test::kF32, weight)
        .value("mistral3.attention.temperature_scale", test::kF32, 0.5F);
  };
  EXPECT_EQ(read_with([](test::Gguf&) {}).query_beta, 0);
  RopeConfig rope = read_with([&](test::Gguf& file) { scaled(file, 1); });
  EXPECT_EQ(rope.query_beta, 0.5);
  EXPECT_EQ(rope.original_context, 16384);
  EXPECT_EQ(rope.attention_factor, 1);
  rope = read_with([&](test::Gguf& file) { scaled(file, 0); });
  EXPECT_NEAR(rope.attention_factor, 1 + 0.1 * std::log(16.0), 1e-15);
  EXPECT_NO_THROW(read_with([&](test::Gguf& file) {
    scaled(file, 1).value("mistral3.attention.temperature_length", test::kU32, 16384U);
  }));
  EXPECT_THROW(read_with([&](test::Gguf& file) {
                 scaled(file, 1).value("mistral3.attention.temperature_length", test::kU32, 8192U);
               }),
               Error);
  EXPECT_THROW(read_with([&](test::Gguf& file) { scaled(file, -1); }), Error);
  // Without its own length, the context is the original one.
  rope = read_with([](test::Gguf& file) {
    file.value("mistral3.attention.temperature_scale", test::kF32, 0.5F);
  });
  EXPECT_EQ(rope.original_context, 262144);
}

TEST(ReadConfigGguf, AgreesWithTheHuggingFaceFormOfTheSameModel) {
  const test::TemporaryDirectory directory;
  for (const bool tied : {false, true}) {
    test::TinyShape shape;
    shape.tied_head = tied;
    shape.attention_bias = tied;
    shape.mlp_bias = !tied;
    shape.rope.scaling = RopeConfig::Scaling::linear;
    shape.rope.factor = 4;
    const auto model = test::make_tiny_model(shape);
    test::write_hugging_face(model, directory.path());
    test::write_gguf(model, directory.path() / "model.gguf");
    const ModelConfig left = read_config_json(directory.path());
    const ModelConfig right = read_config_gguf(*open_gguf(directory.path() / "model.gguf"));
    EXPECT_EQ(left.vocabulary_size, right.vocabulary_size);
    EXPECT_EQ(left.context_length, right.context_length);
    EXPECT_EQ(left.n_layers, right.n_layers);
    EXPECT_EQ(left.dim, right.dim);
    EXPECT_EQ(left.n_heads, right.n_heads);
    EXPECT_EQ(left.n_kv_heads, right.n_kv_heads);
    EXPECT_EQ(left.head_dim, right.head_dim);
    EXPECT_EQ(left.hidden_dim, right.hidden_dim);
    EXPECT_EQ(left.norm_epsilon, right.norm_epsilon);
    EXPECT_EQ(left.tied_head, right.tied_head);
    EXPECT_EQ(left.attention_bias, right.attention_bias);
    EXPECT_EQ(left.mlp_bias, right.mlp_bias);
    EXPECT_EQ(left.bos_token, right.bos_token);
    EXPECT_EQ(left.end_tokens, right.end_tokens);
    EXPECT_EQ(rope_frequencies(left), rope_frequencies(right));
  }
}

}  // namespace
}  // namespace outrider
