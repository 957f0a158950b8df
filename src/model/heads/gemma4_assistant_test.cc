// SPDX-License-Identifier: Apache-2.0
// Assistants of Gemma 4 against transformers (tests/golden/make/make_assistant_golden.py): their
// rows' logits and states. Rows leave the target's sequence unchanged and do not read each other.
// Unfit files and targets are refused.
#include "model/heads/gemma4_assistant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/dispatch.h"
#include "outrider/error.h"
#include "tests/support/goldens/changed_golden.h"
#include "tests/support/goldens/golden_assistants.h"
#include "tests/support/kernel_tables.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::GoldenAssistant;
using test::kNoKey;
using test::Row;
using test::Rows;
using ::testing::HasSubstr;

constexpr float kNever = -std::numeric_limits<float>::infinity();
const LoadOptions kF32 = {.weights = WeightKind::f32, .kv = kernels::KvKind::f32, .n_threads = 2};

// A target that has run a text except for its last token.
struct Loaded {
  std::unique_ptr<LanguageModel> target;
  std::unique_ptr<Gemma4Assistant> assistant;
  std::unique_ptr<Sequence> sequence;
  std::vector<float> states;  // (n, dim): the state after each place that was run
};

// path: the assistant's; empty: the golden's directory.
Loaded load(const GoldenAssistant& golden, const LoadOptions& options = kF32,
            const fs::path& path = {}) {
  Loaded loaded;
  loaded.target = load_model(golden.target, options);
  loaded.assistant =
      load_gemma4_assistant(path.empty() ? golden.folder : path, *loaded.target, options);
  loaded.sequence = loaded.target->open({});
  const TokenBlock block{.sequence = loaded.sequence.get(),
                         .tokens = std::span(golden.tokens).first(golden.n_text - 1),
                         .parents = {}};
  ForwardOutput output;
  loaded.target->forward({&block, 1}, {.feature_layers = loaded.assistant->feature_layers()},
                         output);
  loaded.states.assign(
      output.features.begin(),
      output.features.begin() +
          static_cast<std::ptrdiff_t>(block.tokens.size() *
                                      static_cast<std::size_t>(output.feature_width)));
  test::keep_first(*loaded.sequence, static_cast<int>(golden.n_text) - 1);
  return loaded;
}

struct Given {
  Rows logits;
  Rows states;
};

Given run(Loaded& loaded, std::span<const TokenId> tokens, std::span<const float> states) {
  const KeyReaders reader{.sequence = loaded.sequence.get(),
                          .n_rows = static_cast<int>(tokens.size())};
  ForwardOutput output;
  loaded.assistant->forward({&reader, 1}, tokens, states, output);
  Given given{.logits = test::rows_of(output), .states = {}};
  for (int row = 0; row < reader.n_rows; ++row) {
    const std::span<const float> state = output.feature_row(row);
    given.states.emplace_back(state.begin(), state.end());
  }
  return given;
}

std::span<const float> last_state(const Loaded& loaded) {
  return std::span<const float>(loaded.states)
      .last(static_cast<std::size_t>(loaded.assistant->state_dim()));
}

// The golden's rows, one pass each, from the state that the previous one gave.
Given draft(Loaded& loaded, const GoldenAssistant& golden) {
  Given all;
  const std::span<const float> last = last_state(loaded);
  Row state(last.begin(), last.end());
  for (std::size_t i = 0; i < golden.logits.size(); ++i) {
    const Given given =
        run(loaded, std::span(golden.tokens).subspan(golden.n_text - 1 + i, 1), state);
    state = given.states.front();
    all.logits.push_back(given.logits.front());
    all.states.push_back(state);
  }
  return all;
}

class Gemma4AssistantGolden : public ::testing::TestWithParam<std::string> {};

// The bound is that of families_test.cc; the script asserts that mistakes move logits by 0.3 and
// more. Tokens of clusters that are not read have the least logit minus 1.
TEST_P(Gemma4AssistantGolden, HasTheLogitsOfTransformers) {
  const GoldenAssistant golden(GetParam());
  Loaded loaded = load(golden);
  const Given given = draft(loaded, golden);
  ASSERT_EQ(given.logits.size(), golden.logits.size());
  for (std::size_t i = 0; i < given.logits.size(); ++i) {
    const Row& row = given.logits[i];
    const Row& expected = golden.logits[i];
    const float masked = *std::min_element(expected.begin(), expected.end());
    double largest = 0;
    std::size_t n_masked = 0;
    for (std::size_t token = 0; token < row.size(); ++token) {
      if (row[token] == kNever) {
        EXPECT_EQ(expected[token], masked) << token;
        ++n_masked;
        continue;
      }
      const double difference = std::fabs(row[token] - expected[token]);
      if (!(difference <= largest)) largest = difference;  // NaN is kept
    }
    EXPECT_LE(largest, 2e-4);
    // Seven of twelve clusters of eight tokens each.
    EXPECT_EQ(n_masked, GetParam() == "ordered" ? 56U : 0U);
    EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(),
              golden.tokens[golden.n_text + i]);
  }
}

// On every table, in any pass, beside any rows, on any number of threads. The target's next pass
// has the same bits as without the head.
TEST_P(Gemma4AssistantGolden, RowsAreTheirOwnAndLeaveNothing) {
  const GoldenAssistant golden(GetParam());
  const std::span<const TokenId> next = std::span(golden.tokens).subspan(golden.n_text - 1, 3);
  for (const test::NamedTable& table : test::runnable_tables()) {
    for (const WeightKind weights : {WeightKind::int8, WeightKind::bf16}) {
      for (const kernels::KvKind kv : {kernels::KvKind::f32, kernels::KvKind::int8}) {
        SCOPED_TRACE(table.name);
        LoadOptions options = {.weights = weights, .kv = kv, .table = table.table, .n_threads = 1};
        Loaded one = load(golden, options);
        options.n_threads = 2;
        Loaded two = load(golden, options);
        const std::vector<TokenId> tokens = {golden.tokens[golden.n_text - 1], 5, 9, 5, 33};
        std::vector<float> states;
        const auto dim = static_cast<std::size_t>(one.assistant->state_dim());
        for (const std::size_t place : {1, 2, 2, 3, 4}) {
          const auto state =
              std::span<const float>(one.states).subspan(one.states.size() - place * dim, dim);
          states.insert(states.end(), state.begin(), state.end());
        }
        const Given together = run(two, tokens, states);
        ASSERT_FALSE(test::same_bits(together.logits[1], together.logits[3]));
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          const Given alone = run(one, std::span(tokens).subspan(i, 1),
                                  std::span<const float>(states).subspan(i * dim, dim));
          EXPECT_TRUE(test::same_bits(together.logits[i], alone.logits[0])) << i;
          EXPECT_TRUE(test::same_bits(together.states[i], alone.states[0])) << i;
        }
        EXPECT_EQ(two.sequence->n_kept(), static_cast<int>(golden.n_text) - 1);
        EXPECT_EQ(two.sequence->n_pending(), 0);
        const auto plain = two.target->open({});
        test::run_and_keep(*two.target, *plain, std::span(golden.tokens).first(golden.n_text - 1));
        test::expect_same_bits(test::run_block(*two.target, *plain, next), 0,
                               test::run_block(*two.target, *two.sequence, next));
      }
    }
  }
}

// Rows read nothing of rejected nodes, which remain in the same pages for a while.
TEST_P(Gemma4AssistantGolden, ReadsNothingOfRejectedNodes) {
  const GoldenAssistant golden(GetParam());
  Loaded loaded = load(golden);
  const Given before = draft(loaded, golden);
  test::run_block(*loaded.target, *loaded.sequence, std::vector<TokenId>{7, 8, 9});
  loaded.sequence->keep({});
  const Given behind = draft(loaded, golden);
  test::expect_same_bits(before.logits, 0, behind.logits);
  test::expect_same_bits(before.states, 0, behind.states);
}

// Sequences of different lengths in one pass.
TEST_P(Gemma4AssistantGolden, ReadsEachTextsOwnKeys) {
  const GoldenAssistant golden(GetParam());
  Loaded loaded = load(golden);
  const auto shorter = loaded.target->open({});
  test::run_and_keep(*loaded.target, *shorter, std::span(golden.tokens).first(9));
  const std::vector<TokenId> tokens = {11, 12, 13};
  std::vector<float> states;
  for (int i = 0; i < 3; ++i) {
    const std::span<const float> last = last_state(loaded);
    states.insert(states.end(), last.begin(), last.end());
  }
  const KeyReaders readers[] = {{.sequence = shorter.get(), .n_rows = 1},
                                {.sequence = loaded.sequence.get(), .n_rows = 2}};
  ForwardOutput output;
  loaded.assistant->forward(readers, tokens, states, output);
  const Rows rows = test::rows_of(output);
  const Given alone =
      run(loaded, std::span(tokens).subspan(1), std::span(states).subspan(states.size() / 3));
  test::expect_same_bits(alone.logits, 0, {rows[1], rows[2]});
  const Given other = run(loaded, std::span(tokens).first(1), last_state(loaded));
  EXPECT_FALSE(test::same_bits(rows[0], other.logits[0]));
}

INSTANTIATE_TEST_SUITE_P(All, Gemma4AssistantGolden, ::testing::ValuesIn(test::golden_assistants()),
                         [](const auto& info) { return info.param; });

TEST(Gemma4Assistant, RefusesSequencesThatItCannotRead) {
  const GoldenAssistant golden("whole");
  Loaded loaded = load(golden);
  Loaded other = load(golden);
  const auto refusal = [&](const Sequence* sequence) -> std::string {
    const KeyReaders reader{.sequence = sequence, .n_rows = 1};
    ForwardOutput output;
    try {
      loaded.assistant->forward({&reader, 1}, std::vector<TokenId>{5}, last_state(loaded), output);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal(nullptr), HasSubstr("a sequence that the target opened, got none"));
  EXPECT_THAT(refusal(other.sequence.get()), HasSubstr("got another model's"));
  EXPECT_THAT(refusal(loaded.target->open({}).get()), HasSubstr("got 0 and 0"));
  test::run_block(*loaded.target, *loaded.sequence, std::vector<TokenId>{7, 8});
  EXPECT_THAT(refusal(loaded.sequence.get()), HasSubstr("and 2"));
  loaded.sequence->keep({});
  EXPECT_EQ(refusal(loaded.sequence.get()), "");
  const auto shortened = loaded.target->fork_without(*loaded.sequence, std::vector<int>{3});
  EXPECT_THAT(refusal(shortened.get()), HasSubstr("run with all layers"));
  ForwardOutput output;
  const KeyReaders reader{.sequence = loaded.sequence.get(), .n_rows = 2};
  EXPECT_THROW(
      loaded.assistant->forward({&reader, 1}, std::vector<TokenId>{5}, last_state(loaded), output),
      Error);
}

// The golden's files with config.json changed, at the top level and in its text_config.
std::string refusal_of(const char* name, const json& changes, const json& of_text = json::object(),
                       const fs::path& target = {}) {
  const GoldenAssistant golden(name);
  const test::TemporaryDirectory directory;
  json config = test::json_of(golden.folder / "config.json");
  const auto change = [](json& of, const json& with) {
    for (const auto& [key, value] : with.items()) {
      if (value == kNoKey) {
        of.erase(key);
      } else {
        of[key] = value;
      }
    }
  };
  change(config["text_config"], of_text);
  change(config, changes);
  fs::copy_file(golden.folder / "model.safetensors", directory.path() / "model.safetensors");
  std::ofstream(directory.path() / "config.json") << config.dump();
  const auto model = load_model(target.empty() ? golden.target : target, {.n_threads = 1});
  try {
    (void)load_gemma4_assistant(directory.path(), *model, {.n_threads = 1});
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "";
}

TEST(Gemma4Assistant, RefusesWhatIsNotDone) {
  EXPECT_EQ(refusal_of("ordered", json::object()), "");
  struct Case {
    json changes;
    json of_text;
    const char* named;
  };
  const std::vector<Case> cases = {
      {{{"model_type", "gemma4_unified_assistant"}}, json::object(), "gemma4_unified_assistant"},
      {{{"text_config", kNoKey}}, json::object(), "text_config"},
      {{{"backbone_hidden_size", 32}}, json::object(), "the target's width of 24, got 32"},
      {{{"backbone_hidden_size", kNoKey}}, json::object(), "got 1536"},
      {{{"tie_word_embeddings", false}}, json::object(), "tie_word_embeddings"},
      {{{"num_centroids", 11}}, json::object(), "num_centroids"},
      {{{"num_centroids", 0}}, json::object(), "num_centroids"},
      {{{"centroid_intermediate_top_k", 13}}, json::object(), "centroid_intermediate_top_k"},
      {{{"centroid_intermediate_top_k", 0}}, json::object(), "centroid_intermediate_top_k"},
      {{{"num_tails", 2}}, json::object(), "num_tails"},
      {json::object(), {{"num_tails", 2}}, "num_tails"},
      {json::object(), {{"model_type", "gemma3_text"}}, "gemma3_text"},
      {json::object(), {{"num_kv_shared_layers", 2}}, "num_kv_shared_layers"},
      {json::object(), {{"hidden_size_per_layer_input", 4}}, "hidden_size_per_layer_input"},
      {json::object(), {{"hidden_size_per_layer_input", kNoKey}}, "hidden_size_per_layer_input"},
      {json::object(), {{"use_double_wide_mlp", true}}, "use_double_wide_mlp"},
      {json::object(), {{"sliding_window", 15}}, "a window of 16, got"},
      {json::object(),
       {{"enable_moe_block", true},
        {"num_experts", 4},
        {"top_k_experts", 2},
        {"moe_intermediate_size", 8}},
       "enable_moe_block"},
      {json::object(), {{"vocab_size", 108}}, "vocabulary of 96, got 108"}};
  for (const auto& [changes, of_text, named] : cases) {
    EXPECT_THAT(refusal_of("ordered", changes, of_text), HasSubstr(named)) << changes << of_text;
  }
  // 0 as in the configuration, before transformers computes it.
  EXPECT_EQ(refusal_of("ordered", json::object(), {{"num_kv_shared_layers", 0}}), "");
}

TEST(Gemma4Assistant, RefusesTargetsThatItDoesNotFit) {
  EXPECT_THAT(
      refusal_of("whole", json::object(), json::object(), test::golden_directory("gemma4_shared")),
      HasSubstr("the target's width of 24, got 32"));
  // A target with that width and vocabulary, but without a window.
  EXPECT_THAT(
      refusal_of("whole", json::object(), json::object(), test::golden_directory("llama_plain")),
      HasSubstr("layer_types to be of kinds of which the target has a layer, got sliding"));
}

// A missing tensor, and an invalid order of tokens.
TEST(Gemma4Assistant, RefusesOtherTensors) {
  const GoldenAssistant golden("ordered");
  const auto target = load_model(golden.target, {.n_threads = 1});
  const auto refusal = [&](const auto& change) -> std::string {
    const test::TemporaryDirectory directory;
    fs::copy_file(golden.folder / "config.json", directory.path() / "config.json");
    std::ifstream file(golden.folder / "model.safetensors", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    change(bytes);
    std::ofstream(directory.path() / "model.safetensors", std::ios::binary) << bytes;
    try {
      (void)load_gemma4_assistant(directory.path(), *target, {.n_threads = 1});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const auto rename = [](const std::string& from, const std::string& to) {
    return [from, to](std::string& bytes) {
      ASSERT_EQ(from.size(), to.size());
      bytes.replace(bytes.find(from), from.size(), to);
    };
  };
  EXPECT_THAT(refusal(rename("post_projection.weight", "past_projection.weight")),
              HasSubstr("post_projection.weight"));
  EXPECT_THAT(
      refusal(rename("masked_embedding.centroids.weight", "masked_embedding.centroidz.weight")),
      HasSubstr("masked_embedding.centroids.weight"));
  EXPECT_THAT(refusal(rename("masked_embedding.token_ordering", "masked_embedding.token_orderinx")),
              HasSubstr("token_ordering of 96 i64 numbers, got none"));
  EXPECT_THAT(refusal(rename("layers.1.mlp.up_proj.weight", "layers.4.mlp.up_proj.weight")),
              HasSubstr("up_proj.weight"));
  // The order's first token occurs twice.
  const auto source = open_safetensors(golden.folder / "model.safetensors");
  const TensorView* const order = source->find("masked_embedding.token_ordering");
  ASSERT_NE(order, nullptr);
  const std::string stored(reinterpret_cast<const char*>(order->data.data()), order->data.size());
  EXPECT_THAT(refusal([&](std::string& bytes) {
                const std::size_t at = bytes.find(stored);
                ASSERT_NE(at, std::string::npos);
                bytes.replace(at + 8, 8, stored.substr(0, 8));
              }),
              HasSubstr("to name each token below 96 once"));
}

// A file of llama.cpp's converter has no clusters, so every token has its logit.
TEST_P(Gemma4AssistantGolden, HasTheBitsOfTheDirectoryFromGguf) {
  const GoldenAssistant golden(GetParam());
  Loaded of_directory = load(golden);
  Loaded of_file = load(golden, kF32, golden.folder / "model.gguf");
  const Given left = draft(of_directory, golden);
  const Given right = draft(of_file, golden);
  test::expect_same_bits(left.states, 0, right.states);
  for (std::size_t i = 0; i < left.logits.size(); ++i) {
    Row masked = right.logits[i];
    for (std::size_t token = 0; token < masked.size(); ++token) {
      EXPECT_NE(masked[token], kNever) << token;
      if (left.logits[i][token] == kNever) masked[token] = kNever;
    }
    EXPECT_TRUE(test::same_bits(left.logits[i], masked)) << i;
  }
}

TEST(Gemma4Assistant, RefusesOtherGgufFiles) {
  const GoldenAssistant golden("whole");
  const auto target = load_model(golden.target, {.n_threads = 1});
  const auto refusal = [&](const fs::path& path) -> std::string {
    try {
      (void)load_gemma4_assistant(path, *target, {.n_threads = 1});
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal(golden.folder / "model.gguf"), "");
  EXPECT_THAT(refusal(test::golden_directory("gemma4_moe") / "model.gguf"),
              HasSubstr("general.architecture to be gemma4-assistant, got gemma4"));
  std::ifstream file(golden.folder / "model.gguf", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  struct Case {
    std::string from, to, named;
  };
  for (const auto& [from, to, named] :
       {Case{"embedding_length_out", "embedding_length_ouu", "embedding_length_out to be there"},
        Case{"nextn_predict_layers", "nextn_predict_layert", "nextn_predict_layert"},
        Case{"nextn.post_projection", "nextn.past_projection", "nextn.post_projection.weight"},
        Case{"blk.1.attn_q.weight", "blk.2.attn_q.weight", "blk.1.attn_q.weight"}}) {
    const test::TemporaryDirectory directory;
    std::string changed = bytes;
    ASSERT_NE(changed.find(from), std::string::npos) << from;
    changed.replace(changed.find(from), from.size(), to);
    const fs::path path = directory.path() / "model.gguf";
    std::ofstream(path, std::ios::binary) << changed;
    EXPECT_THAT(refusal(path), HasSubstr(named));
  }
}

TEST(Gemma4Assistant, IsKnownByItsConfiguration) {
  EXPECT_TRUE(is_gemma4_assistant(GoldenAssistant("whole").folder));
  EXPECT_TRUE(is_gemma4_assistant(GoldenAssistant("whole").folder / "model.gguf"));
  EXPECT_FALSE(is_gemma4_assistant(GoldenAssistant("whole").folder / "model.safetensors"));
  EXPECT_FALSE(is_gemma4_assistant(test::golden_directory("gemma4_keys")));
  EXPECT_FALSE(is_gemma4_assistant(test::golden_directory("gemma4_moe") / "model.gguf"));
  EXPECT_FALSE(is_gemma4_assistant(test::golden_directory("none")));
}

}  // namespace
}  // namespace outrider
