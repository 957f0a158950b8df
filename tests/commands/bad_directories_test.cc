// SPDX-License-Identifier: Apache-2.0
// Broken Hugging Face directories, each made from a good one by one change, given to the real
// program: exit status 1, one line of bounded length that names the problem, and an empty standard
// output.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/models/broken_model.h"

namespace outrider::test {
namespace {

struct BadDirectory {
  const char* what;
  Breakage breakage;
  std::string names;  // what the message must name
};

constexpr const char* kQuery = "model.layers.0.self_attn.q_proj.weight";
constexpr const char* kNorm = "model.norm.weight";

std::vector<BadDirectory> bad_directories() {
  const json nan = std::numeric_limits<double>::quiet_NaN();  // written as null
  return {
      {"no config", without("config.json"), "config.json"},
      {"empty config", with_text("config.json", ""), "syntax error"},
      {"config of zeros", with_text("config.json", std::string(64, '\0')), "config.json"},
      {"config cut short", cut("config.json", 0.5), "config.json"},
      {"config of garbage",
       with_text("config.json",
                 "\x7f"
                 "ELF\xff\xfe\x1b[31m"),
       "config.json"},
      {"config an array", with_text("config.json", "[]"), "object"},
      {"config a directory", as_directory("config.json"), "config.json"},
      {"config a pipe", as_pipe("config.json"), "config.json"},
      {"config of 2 MiB", with_text("config.json", std::string(2 << 20, ' ')), "1 MiB"},
      {"config nested deeply", with_text("config.json", nested(400'000)), "nested"},
      {"value nested deeply",
       with_text("config.json",
                 "{\"model_type\": \"llama\", \"vocab_size\": " + nested(400'000) + "}"),
       "nested"},
      {"other model type", config("model_type", "mamba"), "mamba"},
      {"other architecture", config("architectures", {"GPTJForCausalLM"}), "GPTJForCausalLM"},
      {"architectures a number", config("architectures", 3), "architectures"},
      {"quantised", config("quantization_config", {{"quant_method", "gptq"}}),
       "quantization_config"},
      {"other activation", config("hidden_act", "relu"), "relu"},
      {"unknown rope", config("rope_scaling", {{"type", "spiral"}, {"factor", 2}}), "spiral"},
      {"longrope without factors", config("rope_scaling", {{"type", "longrope"}, {"factor", 2}}),
       "short_factor"},
      {"longrope with two factors",
       config("rope_scaling",
              {{"type", "longrope"}, {"short_factor", {1, 1}}, {"long_factor", {1, 2}}}),
       "rope divisors"},
      {"rope factor negative", config("rope_scaling", {{"type", "linear"}, {"factor", -1}}),
       "factor"},
      {"rope scaling a string", config("rope_scaling", "linear"), "rope_scaling"},
      {"rope theta 0", config("rope_theta", 0), "theta"},
      {"no hidden_size", no_config("hidden_size"), "hidden_size"},
      {"vocabulary negative", config("vocab_size", -300), "vocabulary"},
      {"vocabulary huge", config("vocab_size", 1LL << 40), "vocab_size"},
      {"vocabulary fractional", config("vocab_size", 300.5), "vocab_size"},
      {"vocabulary larger than the embedding", config("vocab_size", kVocabulary + 1),
       "model.embed_tokens.weight"},
      {"vocabulary smaller than the embedding", config("vocab_size", kVocabulary - 1),
       "model.embed_tokens.weight"},
      {"context 0", config("max_position_embeddings", 0), "context"},
      {"context huge", config("max_position_embeddings", 2147483647), "context"},
      {"no layers", config("num_hidden_layers", 0), "layers"},
      {"more layers than tensors", config("num_hidden_layers", 3), "model.layers.2"},
      {"number of layers a string", config("num_hidden_layers", "2"), "num_hidden_layers"},
      {"no heads", config("num_attention_heads", 0), "heads"},
      {"heads that share badly", config("num_key_value_heads", 3), "key-value heads"},
      {"more key heads than heads", config("num_key_value_heads", 8), "key-value heads"},
      {"heads that do not divide",
       edited("config.json",
              [](json& keys) {
                keys.erase("head_dim");
                keys["num_attention_heads"] = 5;
              }),
       "num_attention_heads"},
      {"head dimension odd", config("head_dim", 15), "head dimension"},
      {"head dimension wrong", config("head_dim", 32), kQuery},
      {"feed-forward wrong", config("intermediate_size", 100), "mlp"},
      {"epsilon NaN as Python writes it",
       [](const fs::path& directory) {
         std::string text = read_text(directory / "config.json");
         text.replace(text.find("1e-05"), 5, "NaN");
         write_text(directory / "config.json", text);
       },
       "config.json"},
      {"epsilon null", config("rms_norm_eps", nan), "rms_norm_eps"},
      {"epsilon 0", config("rms_norm_eps", 0), "epsilon"},
      {"epsilon beyond a float", config("rms_norm_eps", 1e300), "epsilon"},
      {"bias promised and not there", config("attention_bias", true), "bias"},
      {"bias flag a string", config("attention_bias", "yes"), "attention_bias"},
      {"end token a string",
       edited("generation_config.json", [](json& keys) { keys["eos_token_id"] = "1"; }),
       "eos_token_id"},
      {"generation config cut short", cut("generation_config.json", 0.5), "generation_config.json"},

      {"no weights", without("model.safetensors"), "model.safetensors"},
      {"empty weights", with_text("model.safetensors", ""), "model.safetensors"},
      {"weights of 7 bytes", with_text("model.safetensors", "1234567"), "model.safetensors"},
      {"weights cut in the header", cut("model.safetensors", 0.001), "model.safetensors"},
      {"weights cut in the data", cut("model.safetensors", 0.9), "model.safetensors"},
      {"weights a directory", as_directory("model.safetensors"), "model.safetensors"},
      {"weights a pipe", as_pipe("model.safetensors"), "model.safetensors"},
      {"header longer than the file", with_text("model.safetensors", std::string(64, '\xff')),
       "model.safetensors"},
      {"header no JSON",
       with_text("model.safetensors", std::string("\x08\0\0\0\0\0\0\0", 8) + "{\"a\":1,]"),
       "model.safetensors"},
      {"shape and bytes differ", header([](json& h) { h[kNorm]["shape"] = {65}; }), kNorm},
      {"shape negative", header([](json& h) { h[kNorm]["shape"] = {-64}; }), kNorm},
      {"shape overflows", header([](json& h) {
         h[kNorm]["shape"] = {1LL << 40, 1LL << 40};
       }),
       kNorm},
      {"shape transposed", header([](json& h) {
         h["model.layers.0.mlp.up_proj.weight"]["shape"] = {64, 96};
       }),
       "mlp.up_proj"},
      {"norm a matrix", header([](json& h) {
         h[kNorm]["shape"] = {8, 8};
       }),
       kNorm},
      {"dtype of integers", header([](json& h) { h[kNorm]["dtype"] = "I32"; }), kNorm},
      {"dtype unknown", header([](json& h) { h[kNorm]["dtype"] = "F4_E2M1"; }), "F4_E2M1"},
      {"dtype missing", header([](json& h) { h[kNorm].erase("dtype"); }), "dtype"},
      {"offsets backwards", header([](json& h) {
         h[kNorm]["data_offsets"] = {256, 0};
       }),
       kNorm},
      {"offsets overlap", header([](json& h) {
         h[kNorm]["data_offsets"] = {0, 256};
       }),
       "model.safetensors"},
      {"tensor missing", header([](json& h) { h["spare"] = h[kQuery], h.erase(kQuery); }), kQuery},
      {"head missing",
       header([](json& h) { h["spare"] = h["lm_head.weight"], h.erase("lm_head.weight"); }),
       "lm_head.weight"},
      {"weights NaN", broken_weights(std::numeric_limits<float>::quiet_NaN()), "NaN"},
      {"shard missing", sharded({{"weight_map", {{kNorm, "other.safetensors"}}}}),
       "other.safetensors"},
      {"shard outside", sharded({{"weight_map", {{kNorm, "../good/model.safetensors"}}}}),
       "../good"},
      {"shard absolute", sharded({{"weight_map", {{kNorm, "/etc/passwd"}}}}), "/etc/passwd"},
      {"index names one tensor of many", sharded({{"weight_map", {{kNorm, "shard.safetensors"}}}}),
       "model.embed_tokens.weight"},
      {"index without map", sharded({{"metadata", 1}}), "weight_map"},
      {"index an array", sharded(json::array()), "index.json"},

      {"no tokenizer", without("tokenizer.json"), "tokenizer.json"},
      {"empty tokenizer", with_text("tokenizer.json", ""), "tokenizer.json"},
      {"tokenizer cut short", cut("tokenizer.json", 0.7), "tokenizer.json"},
      {"tokenizer a pipe", as_pipe("tokenizer.json"), "tokenizer.json"},
      {"tokenizer nested deeply", with_text("tokenizer.json", nested(400'000)), "nested"},
      {"tokenizer of another kind", tokenizer([](json& t) { t["model"]["type"] = "WordPiece"; }),
       "WordPiece"},
      {"Unigram without scores", tokenizer([](json& t) { t["model"]["type"] = "Unigram"; }),
       "scores"},
      {"no vocabulary", tokenizer([](json& t) { t["model"].erase("vocab"); }), "vocab"},
      {"token id negative", tokenizer([](json& t) { t["model"]["vocab"]["a"] = -1; }), "-1"},
      {"token id huge", tokenizer([](json& t) { t["model"]["vocab"]["a"] = 1LL << 40; }), "an id"},
      {"token id twice", tokenizer([](json& t) { t["model"]["vocab"]["a"] = 5; }), "id 5"},
      {"merge of one half", tokenizer([](json& t) { t["model"]["merges"][0] = "abc"; }), "merges"},
      {"merge of unknown pieces", tokenizer([](json& t) { t["model"]["merges"][0] = "qq zz"; }),
       "qq"},
      {"unknown pre-tokenizer", tokenizer([](json& t) {
         t["pre_tokenizer"] = {{"type", "Magic"}};
       }),
       "Magic"},
      {"pattern that does not compile", tokenizer([](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"Regex", "(a"}}},
                               {"behavior", "Isolated"},
                               {"invert", false}};
       }),
       "(a"},
      {"unknown decoder", tokenizer([](json& t) {
         t["decoder"] = {{"type", "Magic"}};
       }),
       "Magic"},
      {"tokenizer config broken", with_text("tokenizer_config.json", "{"), "tokenizer_config.json"},
  };
}

TEST(BadInput, DirectoriesAreRefused) {
  const fs::path directory = Good::get().root() / "bad";
  for (const BadDirectory& bad : bad_directories()) {
    SCOPED_TRACE(bad.what);
    fs::remove_all(directory);
    fs::copy(Good::get().directory(), directory);
    bad.breakage(directory);
    expect_refused(run_program(generate_words(directory)), 1, bad.names);
    expect_others_hold(directory);
    // As a drafter it is refused with the same message. (Its logits are only a proposal, and a
    // drafter without tokenizer is assumed to have the target's.)
    const bool drafts = std::string_view(bad.what) == "weights NaN" ||
                        std::string_view(bad.what) == "no tokenizer" ||
                        std::string_view(bad.what) == "tokenizer config broken";
    if (drafts) continue;
    expect_refused(
        run_program(generate_words(Good::get().directory(), {"--draft", directory.string()})), 1,
        bad.names);
  }
}

}  // namespace
}  // namespace outrider::test
