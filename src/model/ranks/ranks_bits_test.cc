// SPDX-License-Identifier: Apache-2.0
// The promise of ranks: for any number of them, logits and features have the bits of one process.
// Ranks are threads here. Every comparison is memcmp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "kernels/dispatch.h"
#include "model/load_model.h"
#include "model/ranks/leading_model.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/identity_model.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/thread_ranks.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using kernels::KvKind;
using test::part;
using test::Row;
using test::Rows;
using test::run_ranks;
using test::ThreadRanks;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Models with shapes that no golden one has, written once for all tests.
class OwnModels {
 public:
  static const fs::path& wide() { return get().wide_; }
  static const fs::path& ragged() { return get().ragged_; }
  static const fs::path& experts() { return get().experts_; }

 private:
  static const OwnModels& get() {
    static const OwnModels models;
    return models;
  }
  OwnModels() {
    // Every product splits at multiples of 32 over up to four ranks.
    test::TinyShape wide;
    wide.dim = 128;
    wide.n_heads = 8;
    wide.n_kv_heads = 2;
    wide.hidden_dim = 288;
    wide_ = write("wide", wide);
    // No size divides another; heads split as 3 + 3, 2 + 2 + 2 and 1 + 2 + 1 + 2 over groups of
    // three.
    test::TinyShape ragged;
    ragged.seed = 3;
    ragged.vocabulary_size = 131;
    ragged.dim = 72;
    ragged.n_heads = 6;
    ragged.n_kv_heads = 2;
    ragged.head_dim = 18;
    ragged.hidden_dim = 100;
    ragged.attention_bias = true;
    ragged.mlp_bias = true;
    ragged_ = write("ragged", ragged);
    test::TinyShape experts;
    experts.seed = 5;
    experts.n_experts = 5;
    experts.n_experts_used = 2;
    experts_ = write("experts", experts);
  }
  fs::path write(const std::string& name, const test::TinyShape& shape) const {
    const fs::path path = directory_.path() / name;
    test::write_hugging_face(test::make_tiny_model(shape), path);
    return path;
  }

  test::TemporaryDirectory directory_;
  fs::path wide_, ragged_, experts_;
};

struct Form {
  std::optional<WeightKind> weights = std::nullopt;
  std::optional<KvKind> kv = std::nullopt;
  int n_threads = 1;
  std::uint64_t kv_memory_bytes = 0;
};

LoadOptions options_of(const Form& form) {
  LoadOptions options;
  options.weights = form.weights;
  options.kv = form.kv;
  options.n_threads = form.n_threads;
  options.kv_memory_bytes = form.kv_memory_bytes;
  return options;
}

// Calls use(model) with the whole model.
void on_one(const fs::path& path, const Form& form,
            const std::function<void(LanguageModel&)>& use) {
  const auto model = load_part(path, options_of(form));
  model->set_min_share_ns(0);
  use(*model);
}

// The same with a model split over n_ranks ranks.
void on_ranks(const fs::path& path, const Form& form, int n_ranks,
              const std::function<void(LanguageModel&)>& use) {
  run_ranks(n_ranks, {}, [&](Communicator& ranks) {
    LoadOptions options = options_of(form);
    options.ranks = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks);
    auto its = load_part(path, options);
    its->set_min_share_ns(0);
    if (n_ranks == 1) return use(*its);
    if (!ranks.leads()) return follow_rank(*its, ranks);
    LeadingModel model(std::move(its), options.ranks);
    use(model);
  });
}

Rows features_of(const ForwardOutput& output, int n_rows) {
  Rows rows;
  for (int i = 0; i < n_rows; ++i) {
    const std::span<const float> row = output.feature_row(i);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

// Passes without the last layer: over a text of their own, and after a whole one.
Rows say_without_last_layer(LanguageModel& model, const std::vector<TokenId>& tokens,
                            const Sequence& whole) {
  const std::array skipped = {model.config().n_layers - 1};
  const auto early = model.open({});
  const auto exit = model.fork_without(whole, skipped);
  if (exit == nullptr) {
    ADD_FAILURE() << "no fork for an early exit";
    return {};
  }
  const std::array<TokenBlock, 2> blocks = {TokenBlock{early.get(), part(tokens, 0, 5), {}},
                                            TokenBlock{exit.get(), part(tokens, 9, 2), {}}};
  ForwardOutput output;
  model.forward(blocks, {.skip_layers = skipped}, output);
  return test::rows_of(output);
}

// Logits and features of many kinds of use: a prompt longer than a page, a tree and its kept path,
// single tokens, forks in one pass, a rewind, a text that ends meanwhile, rows without logits, an
// early exit, and the output matrix alone.
Rows say(LanguageModel& model) {
  const ModelConfig& config = model.config();
  const auto vocabulary_size = static_cast<unsigned>(config.vocabulary_size);
  const auto n = static_cast<std::size_t>(std::min(config.context_length - 20, 75));
  const std::vector<TokenId> tokens = test::tokens_without_pattern(n + 20, 1, vocabulary_size);
  Rows said;
  const auto add = [&said](const Rows& rows) { said.insert(said.end(), rows.begin(), rows.end()); };

  const auto first = model.open({.n_reserved = static_cast<int>(n) + 20});
  add(test::run_and_keep(model, *first, part(tokens, 0, n)));
  const std::array parents = {-1, 0, 0, 2, -1};
  add(test::run_block(model, *first, part(tokens, n, 5), parents));
  const std::array path = {0, 2, 3};
  first->keep(path);
  add(test::decode_one_by_one(model, *first, part(tokens, n + 5, 3)));

  const auto fork = first->fork();
  const auto other = model.open({});
  {
    const auto brief = model.open({});
    add(test::run_and_keep(model, *brief, part(tokens, 3, 2)));
  }
  const std::array<TokenBlock, 3> blocks = {
      TokenBlock{first.get(), part(tokens, 1, 2), {}},
      TokenBlock{fork.get(), part(tokens, 2, 3), {}},
      TokenBlock{other.get(), part(tokens, 0, 4), {}},
  };
  const std::array rows = {1, 4, 8};
  const std::array layers = {0, 1, config.n_layers};
  ForwardOutput output;
  model.forward(blocks,
                {.logits = {.kind = RowSet::Kind::listed, .rows = rows}, .feature_layers = layers},
                output);
  add(test::rows_of(output));
  const Rows features = features_of(output, 9);
  add(features);
  model.forward({&blocks[2], 1}, {.logits = {.kind = RowSet::Kind::none}}, output);
  test::keep_first(*other, 8);

  const int n_left = first->rewind(static_cast<int>(n) / 2);
  add(test::run_and_keep(
      model, *first,
      part(tokens, static_cast<std::size_t>(n_left), n - static_cast<std::size_t>(n_left))));

  if (config.n_layers > 1) add(say_without_last_layer(model, tokens, *other));

  const std::size_t at = static_cast<std::size_t>(2 * config.dim);
  std::vector<float> last(features[1].begin() + static_cast<std::ptrdiff_t>(at), features[1].end());
  last.insert(last.end(), features[4].begin() + static_cast<std::ptrdiff_t>(at), features[4].end());
  model.project(last, output);
  add(test::rows_of(output));
  return said;
}

void expect_equal(const Rows& expected, const Rows& said) {
  ASSERT_EQ(expected.size(), said.size());
  test::expect_same_bits(expected, 0, said);
}

void expect_ranks_say_the_same(const fs::path& path, const Form& form,
                               std::initializer_list<int> numbers_of_ranks) {
  Rows expected;
  on_one(path, form, [&](LanguageModel& model) { expected = say(model); });
  ASSERT_FALSE(test::same_bits(expected[0], expected[1]));
  for (const int n_ranks : numbers_of_ranks) {
    SCOPED_TRACE(std::to_string(n_ranks) + " ranks");
    Rows said;
    on_ranks(path, form, n_ranks, [&](LanguageModel& model) { said = say(model); });
    expect_equal(expected, said);
  }
}

class RanksBits : public ::testing::TestWithParam<std::tuple<WeightKind, KvKind>> {
 protected:
  Form form() const { return {.weights = std::get<0>(GetParam()), .kv = std::get<1>(GetParam())}; }
};

TEST_P(RanksBits, Llama) { expect_ranks_say_the_same(OwnModels::wide(), form(), {1, 2, 3, 4}); }
TEST_P(RanksBits, UnevenHeads) {
  expect_ranks_say_the_same(OwnModels::ragged(), form(), {2, 3, 4, 6});
}
TEST_P(RanksBits, Qwen2) {
  expect_ranks_say_the_same(test::golden_directory("qwen2_untied"), form(), {1, 2, 3, 4});
}
TEST_P(RanksBits, Mixtral) {
  expect_ranks_say_the_same(OwnModels::experts(), form(), {1, 2, 3, 4});
}
TEST_P(RanksBits, Qwen3Experts) {
  expect_ranks_say_the_same(test::golden_directory("qwen3_moe_plain"), form(), {1, 2, 3, 4});
}

INSTANTIATE_TEST_SUITE_P(Kinds, RanksBits,
                         ::testing::Values(std::tuple(WeightKind::f32, KvKind::f32),
                                           std::tuple(WeightKind::bf16, KvKind::bf16),
                                           std::tuple(WeightKind::int8, KvKind::int8),
                                           std::tuple(WeightKind::int4, KvKind::bf16)),
                         [](const auto& info) {
                           return std::string(kernels::name_of(std::get<0>(info.param))) + "_" +
                                  name_of(std::get<1>(info.param));
                         });

TEST(Ranks, SeveralThreadsEach) {
  const Form form = {.weights = WeightKind::int8, .kv = KvKind::bf16, .n_threads = 3};
  expect_ranks_say_the_same(OwnModels::ragged(), form, {2, 3});
  expect_ranks_say_the_same(OwnModels::experts(), form, {2});
}

// GGUF's own blocks, with query and key rows in GGUF's order.
TEST(Ranks, QuantisedGguf) {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.dim = 256;
  shape.n_heads = 8;
  shape.n_kv_heads = 4;
  shape.head_dim = 32;
  shape.hidden_dim = 512;
  const test::TinyModel model = test::make_tiny_model(shape);
  for (const ElementType type : {ElementType::q8_0, ElementType::q4_0, ElementType::q6_k}) {
    const fs::path file = directory.path() / (std::string(name_of(type)) + ".gguf");
    test::write_gguf(model, file, {.matrices = type, .head = ElementType::q6_k});
    expect_ranks_say_the_same(file, {}, {2, 3});
  }
}

// LongRoPE uses other angles from the first token on if a prompt is going to be long: every rank
// must know its length.
TEST(Ranks, KnowHowLongAPromptWillBe) {
  const fs::path path = test::golden_directory("phi3_long");  // original context: 48 positions
  const auto run = [](LanguageModel& model, int n_tokens) {
    const auto sequence = model.open({.n_tokens = n_tokens});
    const std::vector<TokenId> tokens =
        test::tokens_without_pattern(8, 1, static_cast<unsigned>(model.config().vocabulary_size));
    return test::run_and_keep(model, *sequence, tokens);
  };
  Rows as_short;
  Rows as_long;
  on_one(path, {}, [&](LanguageModel& model) {
    as_short = run(model, 8);
    as_long = run(model, 60);
  });
  ASSERT_FALSE(test::same_bits(as_short.back(), as_long.back()));
  on_ranks(path, {}, 3, [&](LanguageModel& model) {
    expect_equal(as_short, run(model, 8));
    expect_equal(as_long, run(model, 60));
  });
}

bool starts_with_one_of(const std::string& name, std::initializer_list<const char*> beginnings) {
  return std::any_of(beginnings.begin(), beginnings.end(),
                     [&](const char* beginning) { return name.starts_with(beginning); });
}

// Every family in every golden form has the bits of one process, or is refused; the refused ones
// are listed here.
TEST(Ranks, EveryFamilyIsTheSameOrRefused) {
  int n_same = 0;
  for (const auto& entry : fs::directory_iterator(test::golden_directory(""))) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(entry.path() / "config.json")) continue;
    for (const fs::path& path : {entry.path(), entry.path() / "model.gguf"}) {
      if (!fs::exists(path)) continue;
      SCOPED_TRACE(path.string());
      const bool is_refused =
          starts_with_one_of(name, {"deepseek", "gemma4", "glm4_moe_lite", "granite_hybrid", "kimi",
                                    "lfm2", "nemotron_h", "olmo", "qwen3_5", "qwen3_next", "t5"});
      if (is_refused) {
        EXPECT_THROW(on_ranks(path, {}, 2, [](LanguageModel&) {}), UsageError);
        continue;
      }
      Rows expected;
      int n_ranks = 0;
      on_one(path, {}, [&](LanguageModel& model) {
        expected = say(model);
        n_ranks = std::min(model.config().n_heads, 3);
        if (model.config().n_experts > 0) n_ranks = std::min(n_ranks, model.config().n_experts);
      });
      Rows said;
      on_ranks(path, {}, n_ranks, [&](LanguageModel& model) { said = say(model); });
      expect_equal(expected, said);
      ++n_same;
    }
  }
  EXPECT_GT(n_same, 30);
}

// Ranks with more key heads hold as many tokens as the others: all refuse the same passes, and
// continue.
TEST(Ranks, RefuseThePassThatTheMemoryDoesNotHold) {
  // The second of three ranks has two key heads, as many as the model; the others have one.
  std::uint64_t page_bytes = 0;
  on_one(OwnModels::ragged(), {.weights = WeightKind::f32, .kv = KvKind::f32},
         [&](LanguageModel& model) {
           page_bytes = static_cast<std::uint64_t>(model.footprint().kv_bytes_per_token) * 64;
         });
  const Form form = {.weights = WeightKind::f32,
                     .kv = KvKind::f32,
                     .kv_memory_bytes = 3 * page_bytes + page_bytes / 2};
  const auto use = [&form](LanguageModel& model, Rows& said) {
    const std::vector<TokenId> tokens = test::tokens_without_pattern(256, 1, 131);
    std::unique_ptr<Sequence> first = model.open({});
    const auto second = model.open({});
    test::run_and_keep(model, *first, part(tokens, 0, 100));
    test::run_and_keep(model, *second, part(tokens, 0, 60));
    const SequenceGrowth growth{second.get(), 10};
    EXPECT_FALSE(model.fits({&growth, 1}));
    try {
      test::run_block(model, *second, part(tokens, 60, 10));
      ADD_FAILURE() << "there is no room";
    } catch (const Error& error) {
      // Half of the requested memory: this rank has one head of two.
      EXPECT_THAT(error.what(), HasSubstr("at most " + std::to_string(form.kv_memory_bytes / 2) +
                                          " bytes (rank 0's part of --kv-memory)"));
    }
    EXPECT_EQ(model.footprint().max_kv_bytes, static_cast<std::int64_t>(form.kv_memory_bytes / 2));
    first.reset();
    EXPECT_TRUE(model.fits({&growth, 1}));
    said = test::run_and_keep(model, *second, part(tokens, 60, 10));
    EXPECT_EQ(model.failure(), "");
  };
  Rows said;
  on_ranks(OwnModels::ragged(), form, 3, [&](LanguageModel& model) { use(model, said); });
  Rows expected;
  on_one(OwnModels::ragged(), {.weights = WeightKind::f32, .kv = KvKind::f32},
         [&](LanguageModel& model) {
           const auto sequence = model.open({});
           const std::vector<TokenId> tokens = test::tokens_without_pattern(256, 1, 131);
           test::run_and_keep(model, *sequence, part(tokens, 0, 60));
           expected = test::run_and_keep(model, *sequence, part(tokens, 60, 10));
         });
  expect_equal(expected, said);
}

// Less than a page of one head.
TEST(Ranks, ACacheThatHoldsNothingIsRefusedByTheRanksOwnBytes) {
  try {
    on_ranks(OwnModels::ragged(), {.kv_memory_bytes = 1000}, 3, [](LanguageModel&) {});
    FAIL() << "no page fits";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0's part of --kv-memory: expected at least "));
    EXPECT_THAT(error.what(), HasSubstr("got 500"));
  }
}

// Only rank 0 receives logits: the others allocate no memory for them, which would be the largest
// buffer.
TEST(Ranks, OtherRanksMakeNoRoomForLogits) {
  run_ranks(2, {}, [](Communicator& ranks) {
    LoadOptions options;
    options.n_threads = 1;
    options.ranks = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks);
    auto its = load_part(OwnModels::wide(), options);
    const DecoderModel& part = *its;
    const ModelConfig config = part.config();
    constexpr std::size_t kRows = 3;
    const std::size_t of_layers =
        kRows * static_cast<std::size_t>(std::max(config.dim, config.hidden_dim));
    const std::size_t of_logits = kRows * static_cast<std::size_t>(config.vocabulary_size);
    ASSERT_LT(of_layers, of_logits);
    if (!ranks.leads()) {
      follow_rank(*its, ranks);
      EXPECT_EQ(part.pass().n_gathered(), of_layers);
      return;
    }
    LeadingModel model(std::move(its), options.ranks);
    const auto sequence = model.open({});
    const std::vector<TokenId> tokens = {1, 2, 3};
    test::run_and_keep(model, *sequence, tokens);
    EXPECT_EQ(part.pass().n_gathered(), of_logits);
  });
}

// An invalid request is refused before the others are told of it.
TEST(Ranks, GoOnBehindARequestThatIsRefused) {
  on_ranks(OwnModels::wide(), {}, 2, [](LanguageModel& model) {
    const auto sequence = model.open({});
    const TokenId unknown = 100'000;
    EXPECT_THROW(test::run_block(model, *sequence, {&unknown, 1}), Error);
    EXPECT_THROW(test::run_block(model, *sequence, {}), Error);
    EXPECT_EQ(sequence->n_pending(), 0);
    const std::vector<TokenId> tokens = {1, 2, 3};
    EXPECT_EQ(test::run_and_keep(model, *sequence, tokens).size(), 3U);
    EXPECT_THROW(sequence->keep(std::array{7}), Error);
    ForwardOutput output;
    EXPECT_THROW(model.project(std::array{1.0F, 2.0F}, output), Error);
    EXPECT_EQ(test::run_and_keep(model, *sequence, tokens).size(), 3U);
    EXPECT_THROW(model.save(*sequence, [](std::span<const std::byte>) {}), Error);
  });
}

// Counts matrices, but not what every rank holds whole: the router, norms, biases.
TEST(Ranks, HoldPartsThatAreAsLargeAsTheyShould) {
  Footprint whole;
  on_one(OwnModels::wide(), {}, [&](LanguageModel& model) { whole = model.footprint(); });
  on_ranks(OwnModels::wide(), {}, 2, [&](LanguageModel& model) {
    const Footprint its = model.footprint();
    EXPECT_LE(static_cast<double>(its.weight_bytes),
              0.55 * static_cast<double>(whole.weight_bytes));
    EXPECT_EQ(its.n_parameters, whole.n_parameters);
    EXPECT_EQ(its.kv_bytes_per_token * 2, whole.kv_bytes_per_token);
    EXPECT_THAT(its.rank_threads, ::testing::ElementsAre(1, 1));
    EXPECT_TRUE(whole.rank_threads.empty());
    EXPECT_EQ(its.max_kv_bytes, 0);
  });
  on_one(OwnModels::experts(), {}, [&](LanguageModel& model) { whole = model.footprint(); });
  on_ranks(OwnModels::experts(), {}, 3, [&](LanguageModel& model) {
    EXPECT_EQ(model.footprint().n_parameters, whole.n_parameters);
  });
}

// Gathers of attention's rows, its output, the MLP's hidden values and its output; and the logits.
TEST(Ranks, GatherFourTimesALayer) {
  run_ranks(2, {}, [](Communicator& ranks) {
    LoadOptions options;
    options.ranks = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks);
    const auto its = load_part(OwnModels::wide(), options);
    const PassList& list = its->pass().list();
    const auto n_gathers = std::count_if(list.ops.begin(), list.ops.end(), [](const Op& op) {
      return std::holds_alternative<op::Gather>(op.what);
    });
    EXPECT_EQ(n_gathers, 4 * list.n_layers + 1);
    // Ops that read whole rows read no split buffer.
    for (const Op& op : list.ops) {
      const auto* const product = std::get_if<op::Multiply>(&op.what);
      if (product == nullptr) continue;
      EXPECT_EQ(product->from.width, product->products[0].matrix->k());
      EXPECT_TRUE(list.buffers[static_cast<std::size_t>(product->from.buffer)].parts.empty());
    }
  });
}

// run_ranks throws the lowest rank's error, here rank 0's.
std::string failure_of(int n_ranks, const ThreadRanks& form,
                       const std::function<void(Communicator&, LoadOptions&)>& body) {
  try {
    run_ranks(n_ranks, form, [&](Communicator& ranks) {
      LoadOptions options;
      options.ranks = std::shared_ptr<Communicator>(std::shared_ptr<void>(), &ranks);
      body(ranks, options);
    });
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

void load_and_run(const fs::path& path, const LoadOptions& options) {
  if (options.ranks->rank() > 0) return follow_model(path, options);
  const auto model = load_model(path, options);
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {1, 2, 3};
  test::run_and_keep(*model, *sequence, tokens);
}

TEST(Ranks, ALostRankIsAnErrorAndStaysOne) {
  const std::string failure =
      failure_of(3, {.timeout_seconds = 3}, [](Communicator& ranks, LoadOptions& options) {
        const fs::path& path = OwnModels::wide();
        if (ranks.rank() == 1) return follow_model(path, options);     // learns it from rank 0
        if (ranks.rank() == 2) return (void)load_part(path, options);  // and is silent afterwards
        const auto model = load_model(path, options);
        const auto sequence = model->open({});
        const std::vector<TokenId> tokens = {1, 2, 3};
        EXPECT_THROW(test::run_block(*model, *sequence, tokens), Error);
        EXPECT_THAT(model->failure(), HasSubstr("rank 2 of 3: nothing came from it for 3 s"));
        test::run_block(*model, *model->open({}), tokens);
      });
  EXPECT_THAT(failure, HasSubstr("rank 2 of 3: nothing came from it for 3 s"));
}

TEST(Ranks, WhatAFollowerCannotGoOnFromIsHeard) {
  const std::string failure = failure_of(2, {}, [](Communicator& ranks, LoadOptions& options) {
    if (ranks.leads()) return load_and_run(OwnModels::wide(), options);
    (void)load_part(OwnModels::wide(), options);
    ranks.give_up("no memory is left");
  });
  EXPECT_THAT(failure, HasSubstr("rank 1 of 2: gave up: no memory is left"));
}

TEST(Ranks, OneRanksLoadErrorIsEveryRanks) {
  const std::string failure = failure_of(3, {}, [](Communicator& ranks, LoadOptions& options) {
    load_and_run(ranks.rank() == 2 ? "/nowhere/at/all" : OwnModels::wide(), options);
  });
  EXPECT_THAT(failure, HasSubstr("rank 2 of 3: gave up: [load model] /nowhere/at/all"));
}

TEST(Ranks, OtherKernelsAreRefused) {
  const kernels::KernelTable* const scalar = kernels::find_table("scalar");
  const auto tables = kernels::compiled_tables();
  const auto other = std::find_if(tables.begin(), tables.end(), [&](const auto* table) {
    return table != scalar && kernels::is_supported(*table);
  });
  if (other == tables.end()) GTEST_SKIP() << "this machine runs one table";
  const std::string failure = failure_of(2, {}, [&](Communicator& ranks, LoadOptions& options) {
    options.table = ranks.leads() ? scalar : *other;
    load_and_run(OwnModels::wide(), options);
  });
  EXPECT_THAT(failure, HasSubstr("kernel table: expected scalar on every rank"));
}

TEST(Ranks, OtherWeightsAreRefused) {
  const std::string failure = failure_of(2, {}, [](Communicator& ranks, LoadOptions& options) {
    load_and_run(ranks.leads() ? OwnModels::wide() : OwnModels::experts(), options);
  });
  EXPECT_THAT(failure, HasSubstr("model (a checksum of its files): expected "));
}

TEST(Ranks, OtherTypesOfWeightsAreRefused) {
  const std::string failure = failure_of(2, {}, [](Communicator& ranks, LoadOptions& options) {
    if (ranks.leads()) options.weights = WeightKind::int8;
    load_and_run(OwnModels::wide(), options);
  });
  EXPECT_THAT(failure,
              HasSubstr("weights: expected int8 on every rank, as on rank 0, got as stored"));
}

TEST(Ranks, MoreThanThereAreHeadsAreRefused) {
  const std::string failure = failure_of(7, {}, [](Communicator&, LoadOptions& options) {
    load_and_run(OwnModels::ragged(), options);
  });
  EXPECT_THAT(failure, HasSubstr("expected at most 6 ranks, one for each query head, got 7"));
}

TEST(Ranks, MappedExpertsAreRefused) {
  const std::string failure = failure_of(2, {}, [](Communicator&, LoadOptions& options) {
    options.experts_in_file = true;
    load_and_run(OwnModels::experts(), options);
  });
  EXPECT_THAT(failure, HasSubstr("experts: expected in memory"));
}

}  // namespace
}  // namespace outrider
