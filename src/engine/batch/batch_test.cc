// SPDX-License-Identifier: Apache-2.0
// Texts that come and go in one batch, each with its own settings: each has the bits that it has
// alone, whatever else runs, and an error ends its own text only.
#include "outrider/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/speculation.h"
#include "model/cache/cache_group.h"
#include "outrider/error.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterFiles;
using test::kDrafterCases;

using Tokens = std::vector<TokenId>;

struct Ended {
  GenerateResult result;
  std::exception_ptr error;
};

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

class BatchOfTexts : public ::testing::Test {
 protected:
  static std::shared_ptr<const Model> load(std::uint64_t kv_memory_bytes = 0) {
    return Model::load(DrafterFiles::get().target(),
                       {.kv_memory_bytes = kv_memory_bytes, .threads = 1});
  }
  static Tokens encode(const std::string& text) { return load()->tokenizer().encode(text, true); }
  static GenerateRequest request_of(Tokens prompt, int max_tokens) {
    return {.prompt = std::move(prompt),
            .options = {.max_tokens = max_tokens,
                        .sampling = DrafterFiles::get().few_characters({}),
                        .ignore_eos = true,
                        .keep_logits = true}};
  }
  // The result of a request in a batch of its own.
  static GenerateResult alone(const std::shared_ptr<const Model>& model,
                              const GenerateRequest& request) {
    return std::move(Generator(model).generate({&request, 1}).front());
  }
  static void expect_same(const GenerateResult& result, const GenerateResult& expected) {
    EXPECT_EQ(result.ids, expected.ids);
    EXPECT_EQ(result.logits, expected.logits);
    EXPECT_EQ(result.text, expected.text);
    EXPECT_EQ(result.finish_reason, expected.finish_reason);
  }
  Batch::OnEnd note(int name) {
    return [this, name](GenerateResult result, std::exception_ptr error) {
      EXPECT_EQ(ended_.count(name), 0U) << "twice";
      ended_[name] = {std::move(result), std::move(error)};
    };
  }
  static void run(Batch& batch) {
    while (batch.step()) {
    }
  }

  std::map<int, Ended> ended_;
};

// Every drafter in one batch, with verification and tree by request. Greedy and coupled texts have
// plain decoding's bits. Some are cancelled before they end.
TEST_F(BatchOfTexts, EachIsTheOneAloneUnderRandomArrivals) {
  const auto model = load();
  std::vector<std::string> drafters;
  for (const auto& drafter : kDrafterCases) {
    const std::vector<std::string> made = test::made_with(drafter);
    drafters.insert(drafters.end(), made.begin(), made.end());
  }
  Batch batch(model, drafters, {.threads = 1}, {.max_running = 5, .prompt_rows = 7});
  for (const auto& drafter : kDrafterCases) {
    if (drafter.own != test::Own::none) drafters.push_back(test::add_to(batch, drafter));
  }
  batch.measure_passes();
  const std::vector<Tokens> prompts = {
      encode(DrafterFiles::kFewPrompt), encode("Quick!"),
      encode(std::string(DrafterFiles::kFewPrompt) + "&@#%#&@@##%%&&" + DrafterFiles::kFewPrompt)};
  const std::vector<std::string> trees = {"", "chain:length=3", "widths:3,2,1",
                                          "dynamic:total=20,depth=5,topk=4"};
  struct Asked {
    GenerateRequest request;
    std::string drafter;
    RequestId id = 0;
    bool cancelled = false;
  };
  std::vector<Asked> asked;
  std::mt19937 random(7);
  const auto any = [&random](const auto& list) { return list[random() % list.size()]; };
  drafters.emplace_back("none");
  constexpr int kRequests = 120;
  int n_accepted_together = 0;
  for (bool more = true; more || static_cast<int>(asked.size()) < kRequests;) {
    if (static_cast<int>(asked.size()) < kRequests && random() % 3 != 0) {
      Asked one;
      one.drafter = any(drafters);
      one.request = request_of(any(prompts), static_cast<int>(random() % 30));
      const bool greedy = random() % 2 == 0;
      if (!greedy) one.request.options.sampling.temperature = 0.8;
      one.request.options.seed = random();
      SpeculationOptions speculation{.drafter = one.drafter, .tree = any(trees)};
      speculation.verify = greedy && random() % 2 == 0 ? "exact" : "coupled";
      speculation.adaptive = random() % 2 == 0;
      one.id = batch.submit(one.request, speculation, note(static_cast<int>(asked.size())));
      asked.push_back(std::move(one));
    }
    if (!asked.empty() && random() % 20 == 0) {
      Asked& one = asked[random() % asked.size()];
      batch.cancel(one.id);
      one.cancelled = true;
    }
    more = batch.step();
    EXPECT_LE(batch.load().n_running, 5U);
  }
  ASSERT_EQ(ended_.size(), static_cast<std::size_t>(kRequests));
  int n_cut = 0;
  for (int i = 0; i < kRequests; ++i) {
    SCOPED_TRACE(std::to_string(i) + " " + asked[static_cast<std::size_t>(i)].drafter);
    const Ended& ended = ended_.at(i);
    ASSERT_EQ(ended.error, nullptr) << message_of(ended.error);
    GenerateResult expected = alone(model, asked[static_cast<std::size_t>(i)].request);
    n_accepted_together += static_cast<int>(ended.result.statistics.accepted);
    if (ended.result.finish_reason == FinishReason::cancelled) {
      EXPECT_TRUE(asked[static_cast<std::size_t>(i)].cancelled);
      ++n_cut;
      ASSERT_LE(ended.result.ids.size(), expected.ids.size());
      expected.ids.resize(ended.result.ids.size());
      EXPECT_EQ(ended.result.ids, expected.ids);
      continue;
    }
    expect_same(ended.result, expected);
  }
  EXPECT_GT(n_cut, 0);
  EXPECT_GT(n_accepted_together, 100);
  EXPECT_EQ(batch.load().n_running, 0U);
  EXPECT_EQ(batch.load().n_waiting, 0U);
}

// The least memory with which a model loads: one page.
TEST_F(BatchOfTexts, PassesAreMeasuredWithinTheMemory) {
  const auto bytes_per_token = static_cast<std::uint64_t>(load()->summary().kv_bytes_per_token);
  const auto model = load(bytes_per_token * kPageTokens);
  const std::vector<std::string> drafters = {"suffix"};
  Batch batch(model, drafters, {.threads = 1});
  batch.measure_passes();
  const GenerateRequest request = request_of(encode(DrafterFiles::kFewPrompt), 12);
  batch.submit(request, {.drafter = "suffix", .adaptive = true}, note(0));
  batch.submit(request, {.drafter = "suffix", .adaptive = true}, note(1));
  run(batch);
  for (const int name : {0, 1}) {
    ASSERT_EQ(ended_.at(name).error, nullptr) << message_of(ended_.at(name).error);
    expect_same(ended_.at(name).result, alone(load(), request));
  }
}

// Texts that together exceed the memory take turns. Drafts that do not fit are not made, with any
// drafter, even if the rule asks the drafter about an empty draft.
TEST_F(BatchOfTexts, TextsGiveWayWhereMemoryIsShort) {
  const auto bytes_per_token = static_cast<std::uint64_t>(load()->summary().kv_bytes_per_token);
  const auto unlimited = load();
  const auto spec = [](const char* of) { return DrafterFiles::get().spec({"", of}); };
  const std::vector<SpeculationOptions> speculations = {
      {},
      {.drafter = "suffix"},
      {.drafter = spec("model:{draft}")},
      {.drafter = spec("model:{draft}"), .rule = "chow:alpha=0.4"},
      {.drafter = spec("model:{draft}"), .tree = "widths:4,3,2,2"},
      {.drafter = spec("eagle:{eagle}")},
      {.drafter = "layerskip:layers=1"},
      {.drafter = "layerskip:skip=0"},
      {.drafter = spec("merge:model:{draft}+layerskip:layers=1")},
      {.drafter = spec("cascade:token-v3:alpha=0.4+model:{draft}+model:{other}")},
      {.drafter = "lookahead:window=3,ngram=2,guesses=2"},
      {.drafter = "recycling:k=3"},
      {.drafter = spec("first:jacobi:length=3,model:{draft}")},
      {.drafter = spec("auto:suffix,model:{draft}")}};
  for (const SpeculationOptions& speculation : speculations) {
    std::int64_t n_preempted = 0;
    for (const std::uint64_t n_pages : {5, 7}) {
      SCOPED_TRACE(speculation.drafter + " " + speculation.rule);
      ended_.clear();
      const auto model = load(n_pages * kPageTokens * bytes_per_token);
      Batch batch(model, {&speculation.drafter, 1}, {.threads = 1}, {.max_kept = 2});
      std::vector<GenerateRequest> requests;
      for (int i = 0; i < 5; ++i) {
        Tokens prompt = encode(i % 2 == 0 ? "Quick!" : std::string(DrafterFiles::kFewPrompt));
        requests.push_back(request_of(std::move(prompt), 100));
        batch.submit(requests.back(), speculation, note(i));
      }
      run(batch);
      ASSERT_EQ(ended_.size(), requests.size());
      Generator alone(unlimited, speculation);
      for (const auto& [i, ended] : ended_) {
        ASSERT_EQ(ended.error, nullptr) << message_of(ended.error);
        const GenerateRequest& request = requests[static_cast<std::size_t>(i)];
        expect_same(ended.result, alone.generate({&request, 1}).front());
      }
      n_preempted += batch.load().n_preempted;
    }
    EXPECT_GT(n_preempted, 0) << speculation.drafter;
  }
}

// Each of the two needs all the memory.
TEST_F(BatchOfTexts, ACancelledTextLeavesItsMemoryToTheNextPass) {
  const auto bytes_per_token = static_cast<std::uint64_t>(load()->summary().kv_bytes_per_token);
  Batch batch(load(bytes_per_token * kPageTokens), {}, {.threads = 1});
  const GenerateRequest request = request_of(encode(DrafterFiles::kFewPrompt), 12);
  const RequestId first = batch.submit(request, {}, note(0));
  batch.step();
  batch.submit(request, {}, note(1));
  batch.cancel(first);
  run(batch);
  EXPECT_EQ(ended_.at(0).result.finish_reason, FinishReason::cancelled);
  ASSERT_EQ(ended_.at(1).error, nullptr) << message_of(ended_.at(1).error);
  expect_same(ended_.at(1).result, alone(load(), request));
}

TEST_F(BatchOfTexts, ATextThatNeedsMoreThanThereIsEndsAlone) {
  const auto bytes_per_token = static_cast<std::uint64_t>(load()->summary().kv_bytes_per_token);
  const auto model = load(2 * kPageTokens * bytes_per_token);
  Batch batch(model, {}, {}, {});
  const GenerateRequest fits = request_of(encode("Quick!"), 40);
  const GenerateRequest too_long = request_of(encode("Quick!"), 3 * kPageTokens);
  batch.submit(fits, {}, note(0));
  batch.submit(too_long, {}, note(1));
  batch.submit(fits, {}, note(2));
  run(batch);
  ASSERT_EQ(ended_.size(), 3U);
  EXPECT_EQ(ended_[0].error, nullptr);
  EXPECT_EQ(ended_[2].error, nullptr);
  ASSERT_NE(ended_[1].error, nullptr);
  EXPECT_NE(message_of(ended_[1].error).find("--kv-memory"), std::string::npos);
  EXPECT_GT(ended_[1].result.ids.size(), std::size_t{kPageTokens});  // the text so far
  expect_same(ended_[0].result, alone(load(), fits));
  expect_same(ended_[2].result, alone(load(), fits));
}

// A shared prompt is run and stored once, so the memory holds all texts.
TEST_F(BatchOfTexts, ShareWhatTheirPromptsBeginWith) {
  constexpr int kTexts = 6;
  constexpr int kShared = 2 * kPageTokens + 10;
  Tokens shared = encode(DrafterFiles::kFewPrompt);
  while (shared.size() < kShared) shared.insert(shared.end(), shared.begin(), shared.end());
  shared.resize(kShared);
  const auto bytes_per_token = static_cast<std::uint64_t>(load()->summary().kv_bytes_per_token);
  // Two shared pages, and one page per text where they diverge.
  const auto model = load((2 + 1 + kTexts) * kPageTokens * bytes_per_token);
  const std::string drafter = DrafterFiles::get().spec({"eagle", "eagle:{eagle}"});
  Batch batch(model, {&drafter, 1}, {.threads = 1}, {.max_kept = 1});
  batch.submit(request_of(shared, 1), {.drafter = drafter}, note(kTexts));
  run(batch);
  std::vector<GenerateRequest> requests;
  for (int i = 0; i < kTexts; ++i) {
    Tokens prompt = shared;
    prompt.push_back(encode("abcdefgh")[static_cast<std::size_t>(i) + 1]);
    requests.push_back(request_of(prompt, 20));
    batch.submit(requests.back(), {.drafter = drafter}, note(i));
  }
  run(batch);
  for (int i = 0; i < kTexts; ++i) {
    ASSERT_EQ(ended_.at(i).error, nullptr) << message_of(ended_.at(i).error);
    EXPECT_GE(ended_.at(i).result.statistics.reused, kShared - 3);
    expect_same(ended_.at(i).result, alone(load(), requests[static_cast<std::size_t>(i)]));
  }
  EXPECT_EQ(batch.load().n_preempted, 0);
}

TEST_F(BatchOfTexts, AnErrorEndsItsOwnText) {
  Batch batch(load(), {}, {}, {.max_kept = 3});
  const GenerateRequest request = request_of(encode("Quick!"), 12);
  GenerateRequest failing = request;
  failing.options.on_token = [n = 0](const TokenEvent&) mutable {
    if (++n == 5) throw std::runtime_error("no more");
  };
  batch.submit(request, {}, note(0));
  batch.submit(failing, {}, note(1));
  batch.submit(request, {}, note(2));
  run(batch);
  ASSERT_NE(ended_[1].error, nullptr);
  EXPECT_EQ(message_of(ended_[1].error), "no more");
  EXPECT_EQ(ended_[1].result.ids.size(), 5U);
  for (const int i : {0, 2}) {
    EXPECT_EQ(ended_[i].error, nullptr);
    expect_same(ended_[i].result, alone(load(), request));
  }
}

TEST_F(BatchOfTexts, RefusesWhatCannotBeRun) {
  const std::string drafter = "suffix";
  Batch batch(load(), {&drafter, 1}, {}, {});
  const GenerateRequest request = request_of(encode("Quick!"), 4);
  const auto refusal = [&](const GenerateRequest& asked, const SpeculationOptions& speculation) {
    try {
      batch.submit(asked, speculation, note(0));
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(refusal(request, {.drafter = "ngram"}).find("one of none suffix"), std::string::npos);
  EXPECT_NE(refusal(request, {.drafter = "suffix", .rule = "chow:alpha=0.1"}).find("distributions"),
            std::string::npos);
  GenerateRequest empty = request;
  empty.prompt.clear();
  EXPECT_NE(refusal(empty, {}).find("at least one token"), std::string::npos);
  EXPECT_FALSE(batch.step());
  EXPECT_TRUE(ended_.empty());
  EXPECT_THROW(Batch(load(), {}, {}, {.max_running = 0}), UsageError);
  EXPECT_THROW(Batch(load(), {}, {}, {.prompt_rows = 0}), UsageError);
  EXPECT_THROW(Batch(load(), {}, {}, {.max_kept = -1}), UsageError);
}

// If no tree is named, each part of a composite drafter drafts in its own shape.
TEST_F(BatchOfTexts, PartsOfADrafterKeepTheirShapes) {
  const auto model = load();
  const std::string spec =
      DrafterFiles::get().spec({"", "merge:model:{draft},length=2+ngram:min=1,max=3,length=4"});
  Batch batch(model, {&spec, 1}, {.threads = 1});
  GenerateRequest request = request_of(encode(DrafterFiles::kFewPrompt), 60);
  batch.submit(request, {.drafter = spec}, note(0));
  run(batch);
  const auto own = make_speculation(*model, {.drafter = spec, .drafter_options = {.threads = 1}});
  Decoder decoder(model->language_model(), own.drafter.get(), *own.acceptance, own.shape,
                  own.stop.get());
  CounterChance chance(0);
  Stream stream(0, request.prompt,
                Transform(request.options.sampling, model->summary().vocabulary_size), chance);
  stream.max_total = stream.n_prompt + 60;
  decoder.begin(stream);
  std::vector<Stream*> streams = {&stream};
  decoder.run_to_end(streams, [](Stream&, const Committed&) { return false; });
  EXPECT_EQ(ended_[0].result.statistics.drafted, stream.counts.drafted);
  EXPECT_EQ(ended_[0].result.statistics.target_passes, stream.counts.target_passes);
}

// A waiting text that is cancelled is delivered while others run.
TEST_F(BatchOfTexts, WhatWaitsCanBeCancelled) {
  Batch batch(load(), {}, {}, {.max_running = 1});
  const GenerateRequest request = request_of(encode("Quick!"), 30);
  batch.submit(request, {}, note(0));
  batch.submit(request, {}, note(1));
  batch.cancel(batch.submit(request, {}, note(2)));
  EXPECT_TRUE(batch.step());
  ASSERT_EQ(ended_.count(2), 1U);
  EXPECT_EQ(ended_[2].result.finish_reason, FinishReason::cancelled);
  EXPECT_EQ(ended_.size(), 1U);
  run(batch);
  EXPECT_EQ(ended_.size(), 3U);
}

// Every ending text is delivered, whatever other callbacks throw.
TEST_F(BatchOfTexts, ACallbackThatThrowsStopsNoOther) {
  Batch batch(load(), {}, {}, {});
  const GenerateRequest request = request_of(encode("Quick!"), 3);
  batch.submit(request, {}, [](const GenerateResult&, const std::exception_ptr&) {
    throw std::runtime_error("not now");
  });
  batch.submit(request, {}, note(1));
  EXPECT_THROW(run(batch), std::runtime_error);
  EXPECT_EQ(ended_.size(), 1U);
  EXPECT_FALSE(batch.step());
}

// on_end may submit, and so may other threads.
TEST_F(BatchOfTexts, TextsComeFromAnywhere) {
  Batch batch(load(), {}, {}, {.max_running = 2});
  const GenerateRequest request = request_of(encode("Quick!"), 5);
  int n_ended = 0;
  batch.submit(request, {}, [&](const GenerateResult&, const std::exception_ptr&) {
    ++n_ended;
    batch.submit(request, {}, [&](const GenerateResult&, const std::exception_ptr&) { ++n_ended; });
  });
  run(batch);
  EXPECT_EQ(n_ended, 2);

  constexpr int kThreads = 3;
  constexpr int kEach = 10;
  std::atomic<int> n_submitting = kThreads;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        const RequestId id = batch.submit(request, {}, note(thread * kEach + i));
        if (i % 4 == 3) batch.cancel(id);
      }
      --n_submitting;
    });
  }
  while (batch.step() || n_submitting > 0) {
  }
  for (std::thread& thread : threads) thread.join();
  run(batch);
  EXPECT_EQ(ended_.size(), std::size_t{kThreads * kEach});
  const GenerateResult expected = alone(load(), request);
  for (const auto& [name, ended] : ended_) {
    EXPECT_EQ(ended.error, nullptr);
    if (name % kEach % 4 != 3) expect_same(ended.result, expected);
  }
}

// The number of experts that a mixture's pass reads grows with its texts.
TEST(BatchOfAMixture, CountsTheExpertsOfPasses) {
  const test::GoldenModel golden("qwen3_moe_plain");
  const auto model = Model::load(golden.directory / "model.gguf", {.threads = 1});
  const auto experts_a_pass = [&](int n_texts) {
    Batch batch(model, std::vector<std::string>{}, {.threads = 1}, {.max_running = 8});
    for (int i = 0; i < n_texts; ++i) {
      const GenerateRequest request = {.prompt = {golden.ids[static_cast<std::size_t>(i)]},
                                       .options = {.max_tokens = 20, .ignore_eos = true}};
      batch.submit(request, {.drafter = "none"}, [](GenerateResult, std::exception_ptr error) {
        if (error) std::rethrow_exception(error);
      });
    }
    while (batch.step()) {
    }
    EXPECT_EQ(batch.load().n_expert_passes, 20);
    return batch.load().n_experts_read / 20;
  };
  EXPECT_EQ(experts_a_pass(1), 3);  // num_experts_per_tok
  EXPECT_GT(experts_a_pass(6), 3.5);
  EXPECT_LE(experts_a_pass(6), 8);
}

}  // namespace
}  // namespace outrider
