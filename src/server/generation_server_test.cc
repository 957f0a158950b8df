// SPDX-License-Identifier: Apache-2.0
// A request gets what the generator makes of it alone, whatever runs beside it; and slots are freed
// again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "outrider/generate.h"
#include "outrider/grammar.h"
#include "outrider/round_observer.h"
#include "server/answers/answer_json.h"
#include "tests/support/models/served_models.h"
#include "tests/support/running_http_server.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::becomes_true;
using test::HttpAnswer;
using test::HttpClient;
using test::request_text;
using test::RunningServer;
using test::ServedModels;
using ::testing::HasSubstr;

std::string draft_spec() { return "model:" + ServedModels::get().draft(); }

ServedOptions with_drafters() {
  ServedOptions options;
  options.drafters = {draft_spec(), "suffix", "none"};
  options.drafters.pop_back();
  options.batch.max_running = 40;
  options.batch.max_kept = 8;
  return options;
}

// As shown in JSON: invalid UTF-8 is replaced.
std::string shown(const std::string& text) {
  return json::parse(dumped(Json(text))).get<std::string>();
}

// A request, and the same for the generator.
struct Wish {
  std::string prompt;
  int max_tokens = 24;
  std::int64_t seed = 1;
  double temperature = 1;
  double top_p = 1;
  std::string drafter = "none";
  std::string pattern = {};  // the answer's pattern
  std::string stop = {};
};

std::vector<Wish> wishes() {
  const std::vector<std::string> drafters = {draft_spec(), "suffix", "none"};
  const std::vector<std::string> prompts = {"Once upon a time", "a b c a b c a b", "x",
                                            "The quick brown fox jumps over the lazy dog, and"};
  std::vector<Wish> all;
  for (int i = 0; i < 36; ++i) {
    Wish wish;
    const auto at = static_cast<std::size_t>(i);
    wish.prompt = prompts[at % prompts.size()] + std::string(at / 9, '.');
    wish.max_tokens = 8 + i % 5 * 8;
    wish.seed = i % 7 == 6 ? -i : 1000 + i;
    wish.temperature = std::vector<double>{1, 0, 0.7, 1.5}[at / 3 % 4];
    wish.top_p = i % 4 == 3 ? 0.8 : 1;
    wish.drafter = drafters[at % 3];
    if (i % 6 == 5) wish.pattern = "[a-f]{4,9}[0-9]{3,12}";
    if (i % 9 == 4) wish.stop = "e";
    all.push_back(std::move(wish));
  }
  return all;
}

json body_of(const Wish& wish) {
  json body = {{"prompt", wish.prompt}, {"max_tokens", wish.max_tokens},
               {"seed", wish.seed},     {"temperature", wish.temperature},
               {"top_p", wish.top_p},   {"logprobs", 2},
               {"ignore_eos", true},    {"speculation", {{"drafter", wish.drafter}}}};
  if (!wish.pattern.empty()) {
    body["response_format"] = {{"type", "regex"}, {"pattern", wish.pattern}};
  }
  if (!wish.stop.empty()) body["stop"] = wish.stop;
  return body;
}

struct Expected {
  std::string text;
  std::vector<double> log_probs;   // reported by the generator
  std::vector<double> recomputed;  // from the rows that it keeps
};

class GenerationServer : public ::testing::Test {
 protected:
  static RunningServer& server() {
    static RunningServer running(ServedModels::get().target(), with_drafters());
    return running;
  }

  // From a generator alone, without a drafter.
  static Expected expected(const Wish& wish) {
    static const std::shared_ptr<const Model> model =
        Model::load(ServedModels::get().target(), {.threads = 1});
    Expected all;
    GenerateRequest request;
    request.prompt = model->tokenizer().encode(wish.prompt, true);
    GenerateOptions& options = request.options;
    options.max_tokens = wish.max_tokens;
    options.sampling = {.temperature = wish.temperature, .top_p = wish.top_p};
    options.seed = static_cast<std::uint64_t>(wish.seed);
    options.ignore_eos = true;
    options.keep_logits = true;
    options.log_probs = 0;
    options.on_token = [&all](const TokenEvent& event) { all.log_probs.push_back(event.log_prob); };
    if (!wish.pattern.empty()) options.grammar = Grammar::from_regex(wish.pattern);
    if (!wish.stop.empty()) options.stop_strings = {wish.stop};
    Generator generator(model);
    const GenerateResult result = generator.generate(std::span(&request, 1)).front();
    all.text = shown(result.text);
    const std::size_t n = result.logits.size() / result.ids.size();
    for (std::size_t i = 0; i < result.ids.size(); ++i) {
      const std::span<const float> row(result.logits.data() + i * n, n);
      double sum = 0;
      const double most = *std::max_element(row.begin(), row.end());
      for (const float logit : row) sum += std::exp(double(logit) - most);
      all.recomputed.push_back(row[static_cast<std::size_t>(result.ids[i])] - most - std::log(sum));
    }
    return all;
  }

  // `of` is a choice of the answer. Compared bit for bit. Recomputed values use another
  // exponential, whose sums of some 300 terms differ by that many roundings of a double.
  static void expect_same(const json& of, const Expected& want, const Wish& wish) {
    EXPECT_EQ(of["text"], want.text) << body_of(wish);
    const auto log_probs = of["logprobs"]["token_logprobs"].get<std::vector<double>>();
    ASSERT_LE(log_probs.size(), want.log_probs.size());
    ASSERT_GE(log_probs.size() + 1, want.log_probs.size());  // except for an end token
    for (std::size_t i = 0; i < log_probs.size(); ++i) {
      EXPECT_EQ(log_probs[i], want.log_probs[i]) << body_of(wish) << " token " << i;
      EXPECT_NEAR(log_probs[i], want.recomputed[i], 1e-12) << body_of(wish) << " token " << i;
    }
  }
};

TEST_F(GenerationServer, AnswersAreTheGeneratorsAlone) {
  for (const Wish& wish : wishes()) {
    expect_same(server().ask("/v1/completions", body_of(wish))["choices"][0], expected(wish), wish);
  }
}

TEST_F(GenerationServer, AnswersAreTheGeneratorsAmongOthers) {
  const std::vector<Wish> all = wishes();
  std::vector<Expected> want;
  for (const Wish& wish : all) want.push_back(expected(wish));
  std::vector<json> answers(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&, i] { answers[i] = server().ask("/v1/completions", body_of(all[i])); });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < all.size(); ++i) {
    expect_same(answers[i]["choices"][0], want[i], all[i]);
  }
}

TEST_F(GenerationServer, StreamsSayTheSame) {
  for (const Wish& wish : wishes()) {
    json body = body_of(wish);
    body["stream"] = true;
    std::string text;
    std::vector<double> log_probs;
    for (const json& chunk : server().stream("/v1/completions", body)) {
      const json& choice = chunk["choices"][0];
      text += choice["text"];
      if (choice["logprobs"].is_null()) continue;
      for (const json& one : choice["logprobs"]["token_logprobs"]) log_probs.push_back(one);
    }
    json choice = {{"text", text}, {"logprobs", {{"token_logprobs", log_probs}}}};
    expect_same(choice, expected(wish), wish);
  }
}

TEST_F(GenerationServer, SeveralChoicesHaveSeedsThatFollowEachOther) {
  Wish wish{.prompt = "Once", .seed = 50};
  json body = body_of(wish);
  body["n"] = 4;
  const json answer = server().ask("/v1/completions", body);
  ASSERT_EQ(answer["choices"].size(), 4U);
  for (int i = 0; i < 4; ++i) {
    wish.seed = 50 + i;
    expect_same(answer["choices"][i], expected(wish), wish);
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 4 * wish.max_tokens);
}

TEST_F(GenerationServer, DraftsAreCounted) {
  const Wish wish{
      .prompt = "Once upon", .max_tokens = 64, .temperature = 0, .drafter = draft_spec()};
  json on = body_of(wish);
  on["speculation"]["adaptive"] = false;  // depends on what pays on this machine
  const json answer = server().ask("/v1/completions", on);
  EXPECT_GT(answer["timings"]["draft_n"].get<int>(), 0);
  EXPECT_GT(answer["timings"]["draft_n_accepted"].get<int>(), 0);
  json off = body_of(wish);
  off["speculation"] = false;
  EXPECT_EQ(server().ask("/v1/completions", off)["timings"]["draft_n"], 0);
}

TEST_F(GenerationServer, WithoutASeedTextsDiffer) {
  json body = body_of({.prompt = "Once", .max_tokens = 24});
  body.erase("seed");
  EXPECT_NE(server().ask("/v1/completions", body)["choices"][0]["text"],
            server().ask("/v1/completions", body)["choices"][0]["text"]);
}

TEST_F(GenerationServer, OneRequestsErrorEndsItAlone) {
  std::vector<std::thread> threads;
  std::vector<int> statuses(12);
  const Wish good{.prompt = "Once upon a time", .max_tokens = 40, .seed = 9};
  const Expected want = expected(good);
  std::vector<json> answers(12);
  for (std::size_t i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      json body = body_of(good);
      // Bans most of the vocabulary's tokens, except those that the grammar excludes anyway.
      if (i % 2 == 1)
        body["response_format"] = {{"type", "grammar"}, {"grammar", "root ::= \"\xe2\x82\xac\""}};
      if (i % 4 == 3) {
        for (int id = 0; id < 384; ++id) body["logit_bias"][std::to_string(id)] = -100;
      }
      const HttpAnswer answer = server().post("/v1/completions", body);
      statuses[i] = answer.status;
      answers[i] = json::parse(answer.body);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 12; ++i) {
    if (i % 2 == 0) {
      EXPECT_EQ(statuses[i], 200);
      expect_same(answers[i]["choices"][0], want, good);
    } else if (i % 4 == 3) {
      EXPECT_GE(statuses[i], 400) << answers[i];
    } else {
      EXPECT_EQ(answers[i]["choices"][0]["text"], "\xe2\x82\xac");
    }
  }
}

TEST_F(GenerationServer, ExtremeSettingsAreNoCrash) {
  for (const json& more :
       {json{{"temperature", 1e300}}, json{{"temperature", 1e-300}},
        json{{"frequency_penalty", 1e308}}, json{{"presence_penalty", -1e308}},
        json{{"repeat_penalty", 1e-308}}, json{{"repeat_penalty", 1e308}}, json{{"top_p", 1e-300}},
        json{{"max_tokens", 0}}, json{{"top_k", 2147483647}}, json{{"seed", INT64_MIN}}}) {
    json body = body_of({.prompt = "Once", .max_tokens = 6});
    body.update(more);
    const HttpAnswer answer = server().post("/v1/completions", body);
    EXPECT_THAT(answer.status, ::testing::AnyOf(200, 400)) << more << answer.body;
    EXPECT_THAT(answer.body, ::testing::Not(HasSubstr(":nan"))) << more;
  }
  EXPECT_EQ(server().post("/v1/completions", body_of({.prompt = "x"})).status, 200);
}

// Counts what a server's batch reports to its observer.
class CountingObserver final : public RoundObserver {
 public:
  void on_round(const RoundRecord& round) override {
    for (const RoundText& text : round.texts) n_emitted += text.emitted;
  }
  void on_end(const EndedText& text) override { n_ended += text.failed ? 0 : 1; }

  std::atomic<int> n_emitted{0};
  std::atomic<int> n_ended{0};
};

TEST(ObservedServer, RoundsOfAllRequestsAreSeen) {
  const auto observer = std::make_shared<CountingObserver>();
  ServedOptions served = with_drafters();
  served.batch.observer = observer;
  RunningServer server(ServedModels::get().target(), served);
  constexpr int kRequests = 5;
  std::vector<std::thread> clients;
  clients.reserve(kRequests);
  for (int i = 0; i < kRequests; ++i) {
    clients.emplace_back([&server] {
      server.ask("/v1/completions",
                 {{"prompt", "Once upon"}, {"max_tokens", 12}, {"ignore_eos", true}});
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(observer->n_ended, kRequests);
  EXPECT_EQ(observer->n_emitted, kRequests * 12);
}

// A KV cache of two pages: texts take turns, and give way to embeddings, which need both.
TEST(FullServer, EmbeddingsFindRoomBesideTexts) {
  const std::string target = ServedModels::get().target();
  ServedOptions served;
  served.batch.max_kept = 8;
  served.drafters = {"suffix"};
  served.speculation.drafter_options.kv_memory_bytes =
      static_cast<std::uint64_t>(
          Model::load(target, {.threads = 1})->summary().kv_bytes_per_token) *
      2 * 64;
  RunningServer server(target, served);
  const json text = {
      {"prompt", "Once upon"}, {"max_tokens", 40}, {"seed", 3}, {"ignore_eos", true}};
  const json vector = {{"input", std::string(100, 'x') + " a"}};
  const json expected_text = server.ask("/v1/completions", text)["choices"];
  const json expected_vector = server.ask("/v1/embeddings", vector)["data"];
  std::vector<std::thread> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back([&, i] {
      for (int j = 0; j < 10; ++j) {
        if (i % 2 == 0) {
          EXPECT_EQ(server.ask("/v1/completions", text)["choices"], expected_text);
        } else {
          EXPECT_EQ(server.ask("/v1/embeddings", vector)["data"], expected_vector);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
}

TEST(FullServer, ClientsThatLeaveFreeTheirPlaces) {
  RunningServer server(ServedModels::get().patient());
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    HttpClient client = server.client();
    json body = json{{"prompt", "Once upon"}, {"max_tokens", 1000000}, {"ignore_eos", true}};
    body["stream"] = i % 2 == 0;
    body["n"] = 1 + i % 3;
    client.send(request_text("POST", "/v1/completions", body.dump()));
    if (i % 4 == 0) client.receive_head();
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 8));
    if (i % 5 == 0) {
      client.reset();
    } else {
      client.close();
    }
  }
  EXPECT_TRUE(becomes_true([&] { return server.model().loop().n_in_flight() == 0; }));
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "Once"}, {"max_tokens", 3}}).status, 200);
}

TEST(FullServer, AFullQueueSaysSoAndRecovers) {
  ServedOptions served;
  served.batch.max_running = 1;
  served.max_waiting = 1;
  RunningServer server(ServedModels::get().patient(), served);
  const json endless = {
      {"prompt", "x"}, {"max_tokens", 1000000}, {"stream", true}, {"ignore_eos", true}};
  const json brief = {{"prompt", "x"}, {"max_tokens", 1}};
  HttpClient runs = server.client();
  runs.send(request_text("POST", "/v1/completions", endless.dump()));
  runs.receive_head();
  HttpClient waits = server.client();
  waits.send(request_text("POST", "/v1/completions", endless.dump()));
  ASSERT_TRUE(becomes_true([&] { return server.model().loop().n_in_flight() == 2; }));
  const HttpAnswer full = server.post("/v1/completions", brief);
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.headers.at("retry-after"), "1");
  EXPECT_EQ(json::parse(full.body)["error"]["code"], "queue_full");
  EXPECT_EQ(server.client().get("/health").status, 200);  // whatever else runs
  json twice = brief;
  twice["n"] = 2;
  waits.close();
  ASSERT_TRUE(becomes_true([&] { return server.model().loop().n_in_flight() == 1; }));
  EXPECT_EQ(server.post("/v1/completions", twice).status, 429);  // there is memory for one of them
  ASSERT_TRUE(becomes_true([&] { return server.model().loop().n_in_flight() == 1; }));
  runs.close();
  ASSERT_TRUE(becomes_true([&] { return server.model().loop().n_in_flight() == 0; }));
  EXPECT_EQ(server.post("/v1/completions", twice).status, 200);
}

TEST(FullServer, DrainEndsWhatRunsAndStopsTheServer) {
  RunningServer server(ServedModels::get().target());
  HttpClient client = server.client();
  const json body = {{"prompt", "x"}, {"max_tokens", 60}, {"stream", true}, {"ignore_eos", true}};
  client.send(request_text("POST", "/v1/completions", body.dump()));
  client.receive_head();
  server.server().drain();
  int n_events = 0;
  std::string last;
  while (const auto event = client.next_event()) {
    ++n_events;
    last = *event;
  }
  EXPECT_GT(n_events, 2);
  EXPECT_EQ(last, "data: [DONE]");
}

TEST(FullServer, StopInTheMiddleOfTexts) {
  for (int i = 0; i < 5; ++i) {
    RunningServer server(ServedModels::get().target());
    HttpClient client = server.client();
    const json body = {
        {"prompt", "x"}, {"max_tokens", 900}, {"stream", true}, {"n", 3}, {"ignore_eos", true}};
    client.send(request_text("POST", "/v1/completions", body.dump()));
    client.receive_head();
    server.server().stop();
  }
}

}  // namespace
}  // namespace outrider::server
