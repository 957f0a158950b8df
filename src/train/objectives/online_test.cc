// SPDX-License-Identifier: Apache-2.0
// Learning from a verdict log: the windows, the loss compared with `distill` with the target
// itself, and a drafter whose agreement grows.
#include "train/objectives/online.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "outrider/tokenizer.h"
#include "tests/support/gradient_differences.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/near.h"
#include "tests/support/one_batch.h"
#include "tests/support/temporary_directory.h"
#include "tokenizer/same_vocabulary.h"
#include "train/losses/losses.h"
#include "train/modules/llama_config.h"
#include "train/objective.h"
#include "train/objectives/distill.h"
#include "train/training_run.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;
using test::all_entries;
using test::expect_gradient_is_difference;
using test::near;
using torch::Tensor;

constexpr int kVocabulary = 300;

// A target, a drafter that is the target with noise, and logs of the target's verdicts.
class Online : public ::testing::Test {
 protected:
  Online() {
    test::TinyShape shape;
    shape.vocabulary_size = kVocabulary;
    shape.n_layers = 1;
    shape.dim = 32;
    shape.n_heads = 2;
    shape.n_kv_heads = 2;
    const test::TinyModel target = test::make_tiny_model(shape);
    test::write_hugging_face(target, at("target"));
    test::write_hugging_face(test::with_noise(target, 0.5F, 3), at("drafter"));
    teacher_ = std::make_shared<Teacher>(at("target"), 1);
    drafter_.path = at("drafter");
    drafter_.n_vocabulary = kVocabulary;
    drafter_.vocabulary = vocabulary_id(*Tokenizer::load(at("drafter")));
  }
  fs::path at(const std::string& name) const { return root_.path() / name; }

  // The target's distribution after each token of a text, by the definition, in double.
  LoggedText judge(const std::vector<TokenId>& tokens, int n_prompt, int n_kept) {
    LoggedText text;
    text.tokens = tokens;
    text.n_prompt = n_prompt;
    teacher_->run(tokens, 1, true, {});
    for (auto place = static_cast<std::size_t>(n_prompt); place < tokens.size(); ++place) {
      const auto logits = teacher_->output().logits_row(static_cast<int>(place) - 1);
      std::vector<TokenId> order(logits.size());
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](TokenId left, TokenId right) {
        return logits[static_cast<std::size_t>(left)] > logits[static_cast<std::size_t>(right)];
      });
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      double rest = 0;
      for (std::size_t i = 0; i < order.size(); ++i) {
        const double logit = logits[static_cast<std::size_t>(order[i])];
        if (i >= static_cast<std::size_t>(n_kept)) {
          rest += std::exp(logit);
          continue;
        }
        text.kept_ids.push_back(order[i]);
        text.kept_logprobs.push_back(static_cast<float>(logit - std::log(sum)));
      }
      text.rest_logprobs.push_back(static_cast<float>(std::log(rest) - std::log(sum)));
    }
    return text;
  }
  static std::vector<TokenId> tokens_of(int number, int n_tokens) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < n_tokens; ++i) {
      tokens.push_back(static_cast<TokenId>(
          mix(static_cast<std::uint64_t>(number), static_cast<std::uint64_t>(i)) % kVocabulary));
    }
    return tokens;
  }
  VerdictLogFormat format(int n_kept) const {
    return {.n_vocabulary = kVocabulary, .n_kept = n_kept, .vocabulary = drafter_.vocabulary};
  }
  void write(const std::string& log, int first, int n_texts, int n_kept, int n_tokens = 24,
             int n_prompt = 5) {
    VerdictLogWriter writer(at(log), format(n_kept), std::int64_t{1} << 26);
    for (int number = first; number < first + n_texts; ++number) {
      writer.append(judge(tokens_of(number, n_tokens), n_prompt, n_kept));
    }
  }
  std::shared_ptr<VerdictTexts> read(const std::string& log, double held_out_share = 0,
                                     int n_sequences = 4, int length = 24) const {
    return std::make_shared<VerdictTexts>(
        at(log), drafter_, BatchShape{.n_sequences = n_sequences, .length = length, .seed = 1},
        held_out_share);
  }
  OnlineOptions options(std::shared_ptr<VerdictTexts> texts) const {
    return {.drafter = at("drafter"),
            .products = Products::full,
            .texts = std::move(texts),
            .export_type = ElementType::f32};
  }
  RunOptions run_options(const std::string& name, int n_steps) const {
    RunOptions run;
    run.directory = at(name);
    run.schedule = {.peak = 5e-3, .final_share = 0.1, .n_warmup = 5, .n_steps = n_steps};
    run.optimizer.weight_decay = 0;
    return run;
  }
  static std::string message_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.what();
    }
    return "no error";
  }

  test::TemporaryDirectory root_;
  std::shared_ptr<Teacher> teacher_;
  LearningDrafter drafter_;
};

// With every token listed, the log's loss equals that of distillation with the target itself:
// value, overlap and gradient, for every divergence.
TEST_F(Online, WithTheWholeVocabularyItIsDistillation) {
  write("log", 0, 5, kVocabulary);
  const auto texts = read("log");
  DistillOptions distill;
  distill.config = teacher_->config();
  distill.products = Products::full;
  distill.init = at("drafter");
  distill.target = teacher_;
  distill.batches = std::make_shared<test::OneBatch>(texts->batch(7).batch);
  for (const Divergence divergence : {Divergence::forward_kl, Divergence::reverse_kl,
                                      Divergence::jensen_shannon, Divergence::total_variation}) {
    distill.divergence = divergence;
    OnlineOptions online = options(texts);
    online.divergence = divergence;
    const auto with_target = make_distill(distill);
    const auto with_log = make_online(online);
    const Loss expected = with_target->loss(0);
    const Loss found = with_log->loss(7);
    EXPECT_GT(expected.value.item<double>(), 0.01);
    EXPECT_TRUE(near(found.value.item<double>(), expected.value.item<double>(), 1e-6));
    EXPECT_EQ(found.n_tokens, expected.n_tokens);
    EXPECT_TRUE(near(found.metrics[0].second, expected.metrics[0].second, 1e-6));
    expected.value.backward();
    found.value.backward();
    const auto left = with_target->trained().parameters();
    const auto right = with_log->trained().parameters();
    ASSERT_EQ(left.size(), right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
      const double scale = left[i].grad().abs().max().item<double>();
      EXPECT_LT((left[i].grad() - right[i].grad()).abs().max().item<double>(), 1e-4 * scale + 1e-8);
    }
  }
}

// Fewer listed tokens never give a larger divergence or a smaller overlap.
TEST_F(Online, FewerTokensBoundTheDivergence) {
  torch::manual_seed(2);
  const Tensor draft = torch::randn({6, 9}, torch::kFloat64) * 2;
  const Tensor target = torch::randn({6, 9}, torch::kFloat64) * 2;
  const Tensor order = target.argsort(-1, /*descending=*/true);
  for (const Divergence divergence : {Divergence::forward_kl, Divergence::reverse_kl,
                                      Divergence::jensen_shannon, Divergence::total_variation}) {
    Tensor finer = divergence_rows(divergence, draft, target);
    for (int n_kept = 9; n_kept >= 1; --n_kept) {
      const Tensor ids = order.narrow(1, 0, n_kept);
      const Tensor coarse_draft = coarsened_logprobs(draft, ids);
      const Tensor coarse_target = coarsened_logprobs(target, ids);
      EXPECT_EQ(coarse_draft.size(1), n_kept == 9 ? 9 : n_kept + 1);
      EXPECT_TRUE(torch::allclose(coarse_draft.exp().sum(-1), torch::ones({6}, torch::kFloat64)));
      const Tensor rows = divergence_rows(divergence, coarse_draft, coarse_target);
      EXPECT_TRUE((rows <= finer + 1e-12).all().item<bool>()) << n_kept;
      EXPECT_TRUE((compare_distributions(coarse_draft, coarse_target).overlap >=
                   compare_distributions(draft, target).overlap - 1e-12)
                      .all()
                      .item<bool>());
      finer = rows;
    }
  }
}

// Also through the column of all other tokens.
TEST_F(Online, GradientsThroughTheRestAreDifferences) {
  torch::manual_seed(3);
  const Tensor target = torch::randn({3, 6}, torch::kFloat64);
  const Tensor ids = target.argsort(-1, true).narrow(1, 0, 2);
  const Tensor coarse_target = coarsened_logprobs(target, ids);
  Tensor draft = torch::randn({3, 6}, torch::kFloat64).requires_grad_();
  const auto loss = [&] {
    return divergence_rows(Divergence::jensen_shannon, coarsened_logprobs(draft, ids),
                           coarse_target)
        .sum();
  };
  loss().backward();
  expect_gradient_is_difference(draft, loss, all_entries(draft), 1e-8, "draft");
}

// For any text lengths, every judged place is in exactly one window, with its own row. At least
// half a window of text precedes it, or all there is.
TEST_F(Online, EveryPlaceIsJudgedOnceWithItsOwnRow) {
  constexpr int kLength = 10;
  std::map<std::pair<int, int>, int> seen;  // (text, place) -> times
  {
    VerdictLogWriter writer(at("log"), format(2), 1 << 20);
    for (int number = 0; number < 12; ++number) {
      const int n_prompt = 1 + number * 3;
      LoggedText text;
      text.n_prompt = n_prompt;
      const int n_tokens = n_prompt + 1 + number * 2;
      for (int i = 0; i < n_tokens; ++i) text.tokens.push_back((number * 23 + i) % kVocabulary);
      for (int i = n_prompt; i < n_tokens; ++i) {
        text.kept_ids.insert(text.kept_ids.end(), {number, i});  // identifies the place
        text.kept_logprobs.insert(text.kept_logprobs.end(), {-1, -2});
        text.rest_logprobs.push_back(-static_cast<float>(i));
        seen[{number, i}] = 0;
      }
      writer.append(text);
    }
  }
  const auto texts = read("log", 0, 1, kLength);
  EXPECT_EQ(texts->n_judged(), static_cast<std::int64_t>(seen.size()));
  // One sequence per batch: an epoch shows each window once; more batches repeat windows.
  int n_found = 0;
  for (int number = 0; n_found < static_cast<int>(seen.size()); ++number) {
    ASSERT_LT(number, 1000);
    const JudgedBatch judged = texts->batch(number);
    ASSERT_LE(judged.batch.length, kLength);
    float n_weighed = 0;
    for (const float weight : judged.batch.weights) n_weighed += weight;
    EXPECT_EQ(n_weighed, static_cast<float>(judged.places.size()));
    for (std::size_t row = 0; row < judged.places.size(); ++row) {
      const int text = judged.kept_ids[2 * row];
      const int place = judged.kept_ids[2 * row + 1];
      const std::int64_t at = judged.places[row];
      EXPECT_EQ(judged.batch.weights[static_cast<std::size_t>(at)], 1);
      EXPECT_EQ(judged.rest_logprobs[row], -static_cast<float>(place));
      EXPECT_EQ(judged.kept_logprobs[2 * row + 1], -2);
      for (std::int64_t back = 0; back <= at; ++back) {
        EXPECT_EQ(judged.batch.tokens[static_cast<std::size_t>(at - back)],
                  (text * 23 + place - back) % kVocabulary);
      }
      EXPECT_GE(at, std::min(place, kLength / 2));
      const int times = ++seen.at({text, place});
      EXPECT_EQ(times, 1);
      ++n_found;
    }
  }
}

TEST_F(Online, LearningRaisesTheOverlapAndTheExportIsTheDrafter) {
  write("log", 0, 24, 20);
  OnlineOptions online = options(read("log", 0.25));
  const auto objective = make_online(online);
  const auto figure = [](Objective& of, const std::string& name) {
    std::map<std::string, double> metrics;
    for (const auto& [metric, value] : of.evaluate()) metrics[metric] = value;
    return metrics.at(name);
  };
  const double loss = figure(*objective, "loss");
  const double overlap = figure(*objective, "overlap");
  const double agreement = figure(*objective, "agreement");
  RunOptions run = run_options("tuned", 60);
  run.export_interval = 25;
  int n_exports = 0;
  run_training(*objective, run, {.on_step = [&](const StepReport& report) {
    const bool is_there = fs::exists(at("tuned") / "config.json");
    EXPECT_EQ(is_there, report.step >= 25);
    n_exports += is_there ? 1 : 0;
  }});
  EXPECT_GT(n_exports, 0);
  EXPECT_LT(figure(*objective, "loss"), 0.9 * loss);
  EXPECT_GT(figure(*objective, "overlap"), overlap + 0.02);
  EXPECT_GE(figure(*objective, "agreement"), agreement);
  // The export read back is the same model.
  online.drafter = at("tuned");
  EXPECT_TRUE(near(figure(*make_online(online), "loss"), figure(*objective, "loss"), 1e-6));
  const ModelConfig before = read_config_json(at("drafter"));
  const ModelConfig after = read_config_json(at("tuned"));
  EXPECT_EQ(after.rope.theta, before.rope.theta);
  EXPECT_EQ(after.end_tokens, before.end_tokens);
}

TEST(ReadLlamaConfig, RefusesOtherFamilies) {
  const fs::path golden = fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden";
  EXPECT_EQ(read_llama_config(golden / "llama_linear_tied").architecture, "llama");
  for (const char* name : {"qwen2_tied", "qwen3_tied", "gemma3_scaled"}) {
    EXPECT_THROW(read_llama_config(golden / name), Error) << name;
  }
}

TEST_F(Online, StoppedAndResumedItEndsWithTheSameBits) {
  write("log", 0, 6, 8);
  const auto weights = [&](const char* name) {
    std::ifstream file(at(name) / "model.safetensors", std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  run_training(*make_online(options(read("log"))), run_options("whole", 8), {});
  RunOptions parts = run_options("parts", 8);
  int n_asked = 0;
  run_training(*make_online(options(read("log"))), parts,
               {.on_step = {}, .should_stop = [&] { return n_asked++ == 3; }});
  parts.resume = true;
  run_training(*make_online(options(read("log"))), parts, {});
  EXPECT_EQ(weights("parts"), weights("whole"));
  EXPECT_FALSE(weights("whole").empty());
}

TEST_F(Online, TextsComeAndGo) {
  write("log", 0, 3, 8);
  const auto texts = read("log");
  EXPECT_EQ(texts->n_texts(), 3);
  const std::uint64_t before = texts->fingerprint();
  EXPECT_EQ(texts->refresh(), 0);
  write("log", 3, 2, 8);
  EXPECT_EQ(texts->refresh(), 2);
  EXPECT_EQ(texts->n_texts(), 5);
  EXPECT_EQ(texts->n_judged(), 5 * 19);
  EXPECT_NE(texts->fingerprint(), before);
  EXPECT_EQ(read("log")->fingerprint(), texts->fingerprint());
  EXPECT_NO_THROW(texts->batch(100));
  // Texts dropped from the log are forgotten: with a low limit, each new text drops others.
  const std::int64_t each = record_bytes(format(8), 24, 19);
  for (int number = 5; number < 30; ++number) {
    VerdictLogWriter(at("log"), format(8), 8 * (kVerdictSegmentHeaderBytes + each))
        .append(judge(tokens_of(number, 24), 5, 8));
  }
  EXPECT_EQ(texts->refresh(), 8);
  EXPECT_EQ(texts->n_texts(), 8);
  EXPECT_EQ(texts->n_judged(), 8 * 19);
  EXPECT_NO_THROW(texts->batch(3));
}

TEST_F(Online, HeldOutTextsAreNotLearnedFrom) {
  write("log", 0, 40, 4);
  const auto texts = read("log", 0.3, 1);
  std::set<std::vector<TokenId>> learned;
  std::set<std::vector<TokenId>> held_out;
  for (int number = 0; number < 40; ++number) learned.insert(texts->batch(number).batch.tokens);
  ASSERT_GT(texts->n_held_out_batches(), 0);
  for (int number = 0; number < texts->n_held_out_batches(); ++number) {
    held_out.insert(texts->held_out_batch(number).batch.tokens);
  }
  EXPECT_LT(learned.size(), 40U);
  for (const auto& tokens : held_out) EXPECT_FALSE(learned.contains(tokens));
  EXPECT_EQ(read("log", 0)->n_held_out_batches(), 0);
}

TEST_F(Online, RefusesWhatDoesNotFitInOneLine) {
  EXPECT_NE(message_of([&] { read("nowhere"); }).find("nowhere"), std::string::npos);
  fs::create_directory(at("empty"));
  EXPECT_FALSE(read("empty")->can_train());
  EXPECT_NE(message_of([&] { read("empty")->batch(0); }).find("none"), std::string::npos);
  write("log", 0, 1, 4);
  EXPECT_NO_THROW(read("log"));
  drafter_.vocabulary.fingerprint ^= 1;
  EXPECT_NE(message_of([&] { read("log"); }).find("vocabulary"), std::string::npos);
  drafter_.vocabulary.fingerprint ^= 1;
  drafter_.n_vocabulary = 10;
  EXPECT_NE(message_of([&] { read("log"); }).find("token ids below"), std::string::npos);
  OnlineOptions online = options(nullptr);
  online.drafter = at("empty");
  EXPECT_NE(message_of([&] { make_online(online); }).find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace outrider::train
