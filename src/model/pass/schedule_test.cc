// SPDX-License-Identifier: Apache-2.0
// Barriers and prefetches of op lists: their number, that each barrier is needed, and that none is
// missing.
#include "model/pass/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "model/decoder_model.h"
#include "model/load_model.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/pass/pass_builder.h"
#include "tensor/kernels_in_use.h"
#include "tests/support/models/float_weight_reader.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

std::unique_ptr<LanguageModel> tiny_model(int n_layers, WeightKind weights) {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.n_layers = n_layers;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());
  return load_model(directory.path(), {.weights = weights, .n_threads = 1});
}

int barriers_of(const LanguageModel& model) {
  return dynamic_cast<const DecoderModel&>(model).pass().n_barriers();
}

// Query, key and value; heads; attention; (quantising its result); output; norm; gate and up;
// gate's activation; down: as many as when barriers were placed by hand. The logits need two more.
TEST(Schedule, HasSoManyBarriersALayer) {
  for (const int n_layers : {1, 3}) {
    EXPECT_EQ(barriers_of(*tiny_model(n_layers, WeightKind::int8)), 10 * n_layers + 2);
    EXPECT_EQ(barriers_of(*tiny_model(n_layers, WeightKind::f32)), 9 * n_layers + 2);
  }
}

// Three more than a dense layer, for any number of experts: before the choice, before rows are
// gathered, and before gate and up.
TEST(Schedule, HasThreeBarriersMoreForExperts) {
  for (const int n_experts : {2, 9}) {
    const test::TemporaryDirectory directory;
    test::TinyShape shape;
    shape.n_layers = 3;
    shape.n_experts = n_experts;
    shape.n_experts_used = 2;
    test::write_hugging_face(test::make_tiny_model(shape), directory.path());
    const auto quantised =
        load_model(directory.path(), {.weights = WeightKind::int8, .n_threads = 1});
    EXPECT_EQ(barriers_of(*quantised), 13 * 3 + 2);
  }
}

// Written independently of schedule.cc: between any two ops that touch one buffer, one of them
// writing, there must be a barrier, unless both divide rows alike.
bool is_safe(const std::vector<Step>& steps) {
  struct Access {
    int buffer;
    Sharing sharing;
    bool writes;
    int epoch;
  };
  std::vector<Access> all;
  int epoch = 0;
  for (const Step& step : steps) {
    if (step.barrier) ++epoch;
    std::vector<Access> own;
    for_each_access(*step.op, [&](int buffer, Sharing sharing, bool writes) {
      own.push_back({buffer, sharing, writes, epoch});
    });
    for (const Access& now : own) {
      for (const Access& before : all) {
        if (before.epoch != epoch || before.buffer != now.buffer) continue;
        if (!before.writes && !now.writes) continue;
        const bool rows = now.sharing == Sharing::rows || now.sharing == Sharing::asked;
        if (!(rows && before.sharing == now.sharing)) return false;
      }
    }
    all.insert(all.end(), own.begin(), own.end());
  }
  return true;
}

void expect_needed_barriers(const PassList& list) {
  for (const std::vector<int>& skipped :
       {std::vector<int>{}, std::vector<int>{1}, std::vector<int>{0, 1, 2}}) {
    for (const bool without_output : {false, true}) {
      std::vector<Step> steps = schedule(list, skipped, without_output);
      EXPECT_TRUE(is_safe(steps));
      for (Step& step : steps) {
        if (!step.barrier) continue;
        step.barrier = false;
        EXPECT_FALSE(is_safe(steps));
        step.barrier = true;
      }
    }
  }
}

TEST(Schedule, EveryBarrierIsNeededAndNoneIsMissing) {
  const auto list_of = [](const LanguageModel& model) -> const PassList& {
    return dynamic_cast<const DecoderModel&>(model).pass().list();
  };
  expect_needed_barriers(list_of(*tiny_model(3, WeightKind::int8)));
  // Added positions and a plain MLP; a norm kept aside; experts in some layers; recurrent layers;
  // experts with biases; a shared expert; Mamba-2; latent attention, with queries from one product
  // and from two; layers that read the keys of others, and per-layer inputs; experts and router
  // with different inputs; experts without a gate on a narrower row; cross-attention.
  for (const char* name : {"gpt2_plain", "gpt_neox_parallel", "qwen3_moe_mixed", "lfm2_untied",
                           "gpt_oss_plain", "qwen3_next_mixed", "granite_hybrid_mixed",
                           "deepseek_v2_plain", "deepseek_v3_plain", "gemma4_shared", "gemma4_moe",
                           "nemotron_h_latent", "nemotron_h_mixed", "t5_plain", "t5_tied"}) {
    SCOPED_TRACE(name);
    const auto path = std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / name;
    const auto model = load_model(path, {.weights = WeightKind::int8, .n_threads = 1});
    expect_needed_barriers(list_of(*model));
    const CpuPass* const encoder = dynamic_cast<const DecoderModel&>(*model).encoder_pass();
    EXPECT_EQ(encoder != nullptr, model->config().has_encoder());
    if (encoder != nullptr) expect_needed_barriers(encoder->list());
  }
}

// Heads of Mamba-2 read channels that other threads have convolved.
TEST(Schedule, HeadsWaitForWhatTheyShare) {
  const auto path = std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden";
  const auto model = load_model(path / "granite_hybrid_plain", {.n_threads = 1});
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  const std::vector<Step> steps = schedule(list, {}, false);
  int n_layers = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const auto* const recur = std::get_if<op::Recur>(&steps[i].op->what);
    if (recur == nullptr || !std::holds_alternative<op::Recur::Mamba>(recur->layer)) continue;
    const auto& before = std::get<op::Recur>(steps[i - 1].op->what);
    EXPECT_TRUE(std::holds_alternative<op::Recur::MambaInputs>(before.layer));
    EXPECT_TRUE(steps[i].barrier);
    ++n_layers;
  }
  EXPECT_EQ(n_layers, 3);
}

TEST(Schedule, LeavesOutLayersAndLogits) {
  const auto model = tiny_model(3, WeightKind::int8);
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  for (const Step& step : schedule(list, std::vector<int>{0, 2}, true)) {
    EXPECT_NE(step.op->layer, 0);
    EXPECT_NE(step.op->layer, 2);
    EXPECT_FALSE(step.op->output);
  }
  EXPECT_EQ(count_barriers(schedule(list, std::vector<int>{0, 2}, true)), 10);
}

// The cap of logits is divided among threads differently than the product before it, and is skipped
// with it.
TEST(Schedule, ACapOfLogitsWaitsForTheirProduct) {
  const std::vector<float> weights(std::size_t{96} * 64, 0.5F);
  const Matrix head =
      Matrix::pack(test::FloatWeightReader(weights, 64, WeightKind::f32), choose_kernels(), 1);
  PassBuilder pass(64);
  pass.logits(pass.stream(), nullptr, head, {.softcap = 2});
  const PassList list = pass.take();
  const std::vector<Step> steps = schedule(list, {}, false);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_TRUE(is_safe(steps));
  EXPECT_TRUE(steps[1].barrier);
  EXPECT_TRUE(steps[2].barrier);
  EXPECT_TRUE(schedule(list, {}, true).empty());
}

TEST(Schedule, PrefetchesTheNextProductAtEveryBarrier) {
  const auto model = tiny_model(2, WeightKind::int8);
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  const std::vector<Step> steps = schedule(list, {}, false);
  const Matrix* next = nullptr;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    if (const auto* product = std::get_if<op::Multiply>(&step->op->what)) {
      next = product->products[0].matrix;
    }
    ASSERT_FALSE(std::holds_alternative<op::MultiplyExperts>(step->op->what));
    if (step->barrier) {
      EXPECT_EQ(step->prefetch, next);
    }
  }
}

// The next experts are known once rows have chosen: nothing is prefetched before.
TEST(Schedule, PrefetchesNoExperts) {
  const auto path = std::filesystem::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden";
  const auto model = load_model(path / "mixtral_plain", {.n_threads = 1});
  const PassList& list = dynamic_cast<const DecoderModel&>(*model).pass().list();
  const std::vector<Step> steps = schedule(list, {}, false);
  int n_products = 0;
  for (const Step& step : steps) {
    if (!std::holds_alternative<op::MultiplyExperts>(step.op->what)) continue;
    EXPECT_EQ(step.prefetch, nullptr);
    ++n_products;
  }
  EXPECT_EQ(n_products, 4);
}

// Lists of random ops over three streams of one width.
class RandomList {
 public:
  static constexpr int kWidth = 64;
  static constexpr int kRows = 5;

  explicit RandomList(unsigned seed) : random_(seed) {
    for (auto& linear : linears_) linear = std::make_unique<Linear>(random_linear());
    experts_.n_used = 2;
    experts_.activation = Activation::clamped_swish;
    experts_.limit = 1.5F;
    experts_.router_bias = {0.5F, -0.25F, 0, 0.125F, -0.5F};
    for (auto* biases : {&experts_.gate_bias, &experts_.up_bias, &experts_.down_bias}) {
      for (int i = 0; i < 5 * kWidth; ++i) {
        biases->push_back(static_cast<float>(i * 29 % 31) * 0.0625F - 0.9375F);
      }
    }
    experts_.router = random_linear(5, WeightKind::f32).matrix;
    for (int i = 0; i < 5; ++i) {
      for (auto* of_kind : {&experts_.gate, &experts_.up, &experts_.down}) {
        of_kind->push_back(random_linear(kWidth, WeightKind::int8).matrix);
      }
    }
    norm_ = {.weight = std::vector<float>(kWidth, 0.5F), .epsilon = 1e-5F};
  }

  PassList build(unsigned seed) {
    std::mt19937 random(seed);
    PassBuilder pass(kWidth);
    streams_ = {pass.stream(), pass.buffer(kWidth), pass.buffer(kWidth)};
    const auto any = [&] { return streams_[random() % streams_.size()]; };
    const auto linear = [&]() -> const Linear& { return *linears_[random() % linears_.size()]; };
    for (int i = 0; i < 40; ++i) {
      const op::Normalise::Part part{any(), random() % 2 == 0 ? &norm_ : nullptr};
      switch (random() % 5) {
        case 0:
          pass.add_to(any(), pass.linear(pass.join({&part, 1}), linear()));
          break;
        case 1:
          pass.add_to(any(),
                      pass.activated(pass.join({&part, 1}), linear(), Activation::gelu_tanh));
          break;
        case 2:
          pass.linear_into(any(), pass.join({&part, 1}), linear());
          break;
        case 3:
          pass.add_to(any(), pass.experts(pass.join({&part, 1}), experts_));
          break;
        default: {
          const Rows from = any();
          const Rows to = any();
          if (from.buffer != to.buffer) pass.copy(from, to);
        }
      }
    }
    return pass.take();
  }

  // The streams after a pass; before each op, each thread waits for a random time if `delayed`.
  std::vector<float> run(PassList list, int n_threads, bool delayed, unsigned seed) {
    CpuPass pass(std::move(list), {.table = &choose_kernels(), .n_threads = n_threads});
    pass.set_min_share_ns(0);
    if (delayed) {
      pass.set_before_op([seed](int thread, const Step& step) {
        const auto at = reinterpret_cast<std::uintptr_t>(step.op) / sizeof(Op);
        if ((at * 2654435761u + static_cast<unsigned>(thread) * 40503u + seed) % 5 == 0) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      });
    }
    pass.prepare_rows(kRows);
    for (const Rows& rows : streams_) {
      for (int i = 0; i < kRows * kWidth; ++i) {
        pass.row(rows, 0)[i] = static_cast<float>((i * 37 + rows.buffer) % 101) / 50.0F - 1.0F;
      }
    }
    pass.run({});
    std::vector<float> all;
    for (const Rows& rows : streams_) {
      all.insert(all.end(), pass.row(rows, 0), pass.row(rows, 0) + kRows * kWidth);
    }
    return all;
  }

 private:
  Linear random_linear(int n_columns = kWidth, WeightKind kind = WeightKind::int8) {
    std::normal_distribution<float> normal(0, 0.125F);
    std::vector<float> values(static_cast<std::size_t>(n_columns) * kWidth);
    for (float& value : values) value = normal(random_);
    const test::FloatWeightReader reader(values, kWidth, kind);
    Linear linear{.matrix = Matrix::pack(reader, choose_kernels(), 1), .bias = {}};
    if (random_() % 2 == 0) linear.bias.assign(kWidth, 0.25F);
    return linear;
  }

  std::mt19937 random_;
  std::array<std::unique_ptr<Linear>, 4> linears_;
  Norm norm_;
  Experts experts_;
  std::array<Rows, 3> streams_;
};

TEST(Schedule, RandomListsUnderDelayedThreadsGiveTheBitsOfOneThread) {
  RandomList lists(3);
  for (unsigned seed = 0; seed < 12; ++seed) {
    const std::vector<float> alone = lists.run(lists.build(seed), 1, false, seed);
    for (const float value : alone) ASSERT_TRUE(std::isfinite(value));
    for (const int n_threads : {2, 3}) {
      const std::vector<float> together = lists.run(lists.build(seed), n_threads, true, seed);
      EXPECT_EQ(std::memcmp(alone.data(), together.data(), alone.size() * sizeof(float)), 0)
          << "list " << seed << " on " << n_threads << " threads";
    }
  }
}

}  // namespace
}  // namespace outrider
