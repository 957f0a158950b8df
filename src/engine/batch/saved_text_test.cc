// SPDX-License-Identifier: Apache-2.0
// Texts on disk: another process continues them with the same bits, and refuses texts of another
// model.
#include "engine/batch/saved_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "outrider/batch.h"
#include "outrider/error.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using ::testing::HasSubstr;

using Tokens = std::vector<TokenId>;

Tokens joined(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

struct Ended {
  RequestId id = 0;
  GenerateResult result;
};

Ended run(Batch& batch, const GenerateRequest& request, const SpeculationOptions& speculation) {
  Ended ended;
  ended.id =
      batch.submit(request, speculation, [&](GenerateResult result, std::exception_ptr error) {
        if (error) std::rethrow_exception(error);
        ended.result = std::move(result);
      });
  while (batch.step()) {
  }
  return ended;
}

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class SavedText : public ::testing::Test {
 protected:
  const test::TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path() / "text";
};

class SavedTextOfDrafter : public SavedText, public ::testing::WithParamInterface<DrafterCase> {};

// Written with one drafter, read in a new batch whose requests use that drafter and others.
TEST_P(SavedTextOfDrafter, GoesOnWithTheBitsOfANewOne) {
  const std::string spec = DrafterFiles::get().spec(GetParam());
  const bool reads_features = test::plan_of(GetParam()).traits.reads_features;
  std::vector<std::string> drafters = test::made_with(GetParam());
  drafters.emplace_back("suffix");
  const auto load = [] { return Model::load(DrafterFiles::get().target(), {.threads = 1}); };
  GenerateRequest request{
      .prompt = load()->tokenizer().encode(
          std::string(DrafterFiles::kFewPrompt) + "&@#%#&@@##%%&&" + DrafterFiles::kFewPrompt,
          true),
      .options = {.max_tokens = 20,
                  .sampling = DrafterFiles::get().few_characters({}),
                  .ignore_eos = true,
                  .keep_logits = true}};
  Batch first(load(), drafters, {.threads = 1}, {.max_kept = 4});
  test::add_to(first, GetParam());
  const Ended ended = run(first, request, {.drafter = spec});
  const ::outrider::SavedText saved = first.save_text(ended.id, path_);
  EXPECT_EQ(saved.n_bytes, static_cast<std::int64_t>(std::filesystem::file_size(path_)));
  EXPECT_GE(saved.n_tokens, static_cast<std::int64_t>(request.prompt.size()) + 19);

  for (const bool measured : {false, true}) {
    for (const std::string& drafter : {spec, std::string("none"), std::string("suffix")}) {
      SCOPED_TRACE(drafter);
      Batch second(load(), drafters, {.threads = 1}, {.max_kept = 4});
      test::add_to(second, GetParam());
      if (measured) second.measure_passes();
      const ::outrider::SavedText loaded = second.load_text(path_);
      EXPECT_EQ(loaded.n_tokens, saved.n_tokens);
      EXPECT_EQ(loaded.n_bytes, saved.n_bytes);
      EXPECT_EQ(second.save_text(loaded.id, directory_.path() / "again").n_bytes, saved.n_bytes);
      EXPECT_EQ(bytes_of(directory_.path() / "again"), bytes_of(path_));
      GenerateRequest further = request;
      further.prompt = joined(joined(request.prompt, ended.result.ids), request.prompt);
      const SpeculationOptions speculation{.drafter = drafter, .adaptive = measured};
      const Ended next = run(second, further, speculation);
      Batch alone(load(), drafters, {.threads = 1});
      test::add_to(alone, GetParam());
      const Ended expected = run(alone, further, speculation);
      EXPECT_EQ(next.result.ids, expected.result.ids);
      EXPECT_EQ(next.result.logits, expected.result.logits);
      if (GetParam().context_determined && !measured) {
        EXPECT_EQ(next.result.accepted_per_round, expected.result.accepted_per_round);
      }
      const bool can = drafter != spec || !reads_features;
      EXPECT_EQ(next.result.statistics.reused, can ? saved.n_tokens : 0);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SavedTextOfDrafter, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

class SavedTextOfFamily : public SavedText, public ::testing::WithParamInterface<const char*> {
 protected:
  std::shared_ptr<const Model> load(const ModelOptions& options = {.threads = 1}) const {
    return Model::load((test::golden_directory(GetParam()) / "model.gguf").string(), options);
  }
  Tokens text(std::size_t n) const {
    Tokens tokens;
    tokens.reserve(n);
    for (std::size_t i = 0; i < n; ++i) tokens.push_back(golden_.ids[i % golden_.ids.size()]);
    return tokens;
  }
  test::GoldenModel golden_{GetParam()};
  GenerateOptions options_{.max_tokens = 10, .ignore_eos = true, .keep_logits = true};
};

// Windows that have freed pages, longrope before and beyond its original context, caches of every
// type, states of recurrent layers; lengths around a page.
TEST_P(SavedTextOfFamily, GoesOnWithTheBitsOfANewOne) {
  for (const std::string& kv : {std::string("f32"), std::string("bf16"), std::string("int8")}) {
    for (const std::size_t n : {1, 20, 53, 54, 55, 56, 119, 150}) {
      SCOPED_TRACE(kv + " " + std::to_string(n));
      const auto model = load({.kv = kv, .threads = 1});
      const std::vector<std::string> none;
      Batch first(model, none, {}, {.max_kept = 1});
      const Ended ended = run(first, {.prompt = text(n), .options = options_}, {});
      const auto saved = first.save_text(ended.id, path_);
      EXPECT_EQ(saved.n_tokens, static_cast<std::int64_t>(n) + 9);
      Batch second(load({.kv = kv, .threads = 1}), none, {}, {.max_kept = 1});
      second.load_text(path_);
      const GenerateRequest further{.prompt = joined(joined(text(n), ended.result.ids), text(3)),
                                    .options = options_};
      const Ended next = run(second, further, {});
      Batch alone(model, none, {});
      const Ended expected = run(alone, further, {});
      EXPECT_EQ(next.result.ids, expected.result.ids);
      EXPECT_EQ(next.result.logits, expected.result.logits);
      if (n != 20 && n != 150) continue;
      EXPECT_EQ(next.result.statistics.reused, static_cast<std::int64_t>(n) + 9);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, SavedTextOfFamily,
                         ::testing::Values("gemma3_scaled", "gemma2_capped", "gemma4_shared",
                                           "phi3_crossing", "qwen3_tied", "lfm2_tied",
                                           "qwen3_next_plain", "granite_hybrid_moe",
                                           "nemotron_h_moe", "deepseek_v3_plain"),
                         [](const auto& info) { return std::string(info.param); });

// The encoder's keys are in a sequence of their own, which files do not hold.
TEST_F(SavedText, IsRefusedOfEncoderDecoders) {
  const test::GoldenModel golden("t5_plain");
  const auto model = Model::load(golden.directory / "model.gguf", {.threads = 1});
  Batch batch(model, {}, {}, {.max_kept = 1});
  const Ended ended = run(batch, {.prompt = golden.encoder_ids, .options = {.max_tokens = 3}}, {});
  const auto refusal = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(refusal([&] { batch.save_text(ended.id, path_); }), HasSubstr("expected a decoder"));
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  std::ofstream(path_, std::ios::binary) << "a text";
  EXPECT_THAT(refusal([&] { batch.load_text(path_); }), HasSubstr("expected a decoder"));
}

class RefusedText : public SavedText {
 protected:
  RefusedText() {
    const Ended ended = run(batch_, {.prompt = prompt_, .options = {.max_tokens = 3}}, {});
    batch_.save_text(ended.id, path_);
  }
  std::string refusal(Batch& batch) const {
    try {
      batch.load_text(path_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  static std::shared_ptr<const Model> load(const ModelOptions& options) {
    return Model::load(DrafterFiles::get().target(), options);
  }
  std::shared_ptr<const Model> model_ = load({.kv = "f32", .threads = 1});
  Tokens prompt_ = model_->tokenizer().encode(DrafterFiles::kFewPrompt, true);
  Batch batch_{model_, {}, {}, {.max_kept = 1}};
};

TEST_F(RefusedText, ThatIsDamaged) {
  EXPECT_EQ(refusal(batch_), "");
  const std::string bytes = bytes_of(path_);
  // Every byte near the beginning, some of the others.
  for (std::size_t at = 0; at < bytes.size(); at += at < 200 ? 1 : 997) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    std::ofstream(path_, std::ios::binary) << damaged;
    EXPECT_NE(refusal(batch_), "") << at;
    std::ofstream(path_, std::ios::binary) << bytes.substr(0, at);
    EXPECT_NE(refusal(batch_), "") << at;
  }
  std::ofstream(path_, std::ios::binary) << bytes + "x";
  EXPECT_THAT(refusal(batch_), HasSubstr("got more"));
  std::ofstream(path_, std::ios::binary) << "once upon a time there was a file";
  EXPECT_THAT(refusal(batch_), HasSubstr("expected a saved text, got another file"));
  std::filesystem::remove(path_);
  EXPECT_THAT(refusal(batch_), HasSubstr("expected a file, got none"));
  std::ofstream(path_, std::ios::binary) << bytes;
  EXPECT_EQ(refusal(batch_), "");
}

// Models of the same shape with other weights, another kernel's bits or another cache type.
TEST_F(RefusedText, OfAnotherModel) {
  const auto refusal_of = [this](const std::shared_ptr<const Model>& model) {
    Batch other(model, {}, {}, {.max_kept = 1});
    return refusal(other);
  };
  EXPECT_EQ(refusal_of(load({.kv = "f32", .threads = 2})), "");
  EXPECT_THAT(refusal_of(load({.weights = "bf16", .kv = "f32", .threads = 1})),
              HasSubstr("of this model, its kernels and its cache type, got others"));
  EXPECT_NE(refusal_of(load({.kv = "int8", .threads = 1})), "");
  EXPECT_NE(
      refusal_of(Model::load(DrafterFiles::get().spec(kDrafterCases[0]).substr(6), {.threads = 1})),
      "");
}

// The sequence's own token count is checked before pages are allocated.
TEST_F(RefusedText, WhoseKeysAreOfAnotherNumberOfTokens) {
  std::string bytes = bytes_of(path_);
  std::uint32_t n_tokens = 0;
  std::copy_n(bytes.data() + 12, sizeof(n_tokens), reinterpret_cast<char*>(&n_tokens));
  const std::size_t at = 16 + std::size_t{4} * n_tokens + 8;
  for (const std::int32_t lie : {1 << 20, 0x7FFFFFFF, -1, 0}) {
    std::copy_n(reinterpret_cast<const char*>(&lie), sizeof(lie), bytes.data() + at);
    std::ofstream(path_, std::ios::binary) << bytes;
    EXPECT_THAT(refusal(batch_), HasSubstr("tokens: expected " + std::to_string(n_tokens))) << lie;
  }
}

// Kept texts are dropped for it.
TEST_F(RefusedText, OnlyWhereTheMemoryCannotHoldIt) {
  const auto bytes_per_token = static_cast<std::uint64_t>(model_->summary().kv_bytes_per_token);
  const auto bounded =
      load({.kv = "f32", .kv_memory_bytes = 2 * 64 * bytes_per_token, .threads = 1});
  Batch batch(bounded, {}, {}, {.max_kept = 4});
  Tokens other(70, prompt_.back());
  run(batch, {.prompt = other, .options = {.max_tokens = 3, .ignore_eos = true}}, {});
  EXPECT_EQ(batch.load().n_kept, 1U);
  EXPECT_EQ(refusal(batch), "");
  EXPECT_EQ(batch.load().n_kept, 1U);
}

// A longer text that begins with it is saved instead.
TEST_F(RefusedText, NotWhereALongerOneHasTakenItsPlace) {
  const GenerateRequest request{.prompt = prompt_,
                                .options = {.max_tokens = 3, .ignore_eos = true}};
  const Ended first = run(batch_, request, {});
  GenerateRequest longer = request;
  longer.options.max_tokens = 9;
  run(batch_, longer, {});
  EXPECT_EQ(batch_.load().n_kept, 1U);
  EXPECT_EQ(batch_.save_text(first.id, path_).n_tokens,
            static_cast<std::int64_t>(prompt_.size()) + 8);
  EXPECT_GT(batch_.drop_text(first.id), 0);
  EXPECT_EQ(batch_.drop_text(first.id), 0);
}

TEST_F(RefusedText, ThatIsNotKeptOrHasNoRoom) {
  EXPECT_THROW(batch_.save_text(77, path_), Error);
  Batch keeps_none(model_, {}, {});
  EXPECT_THAT(refusal(keeps_none), HasSubstr("max_kept"));
  const RequestId id = batch_.load_text(path_).id;
  batch_.drop_text(id);
  EXPECT_EQ(batch_.load().n_kept, 0U);
  EXPECT_THROW(batch_.save_text(id, path_), Error);
  EXPECT_THROW(batch_.save_text(batch_.load_text(path_).id, directory_.path() / "no" / "such"),
               Error);
}

}  // namespace
}  // namespace outrider
