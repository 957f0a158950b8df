// SPDX-License-Identifier: Apache-2.0
// The server's answers after a process that held a part of its model is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "outrider/ranks.h"
#include "server/server.h"
#include "tests/support/http_client.h"
#include "tests/support/models/lost_rank.h"
#include "tests/support/models/served_models.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider::server {
namespace {

using test::HttpAnswer;
using test::HttpClient;
using ::testing::HasSubstr;

TEST(RanksServer, ALostRankIsAnUnavailableModel) {
  test::LostRank lost(test::ServedModels::get().target(), 2);
  ServedOptions served;
  served.name = "tiny";
  served.sampling.temperature = 1;
  const auto model = std::make_shared<const ServedModel>(lost.load(), served);
  Server server(model, {.port = 0});
  std::thread runs([&] { server.run(); });
  const auto ask = [&] {
    return HttpClient(server.port())
        .post("/v1/completions", R"({"prompt": "a", "max_tokens": 2})", test::kJsonFields);
  };
  EXPECT_EQ(HttpClient(server.port()).get("/health").status, 200);
  EXPECT_EQ(ask().status, 200);
  lost.lose();
  // A pass detects the loss; from then on no request is started.
  for (int time = 0; time < 2; ++time) {
    const HttpAnswer answer = ask();
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("rank 1 of 2"));
  }
  for (const char* path : {"/health", "/ready"}) {
    const HttpAnswer answer = HttpClient(server.port()).get(path);
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("\"status\":\"failed\""));
    EXPECT_THAT(answer.body, HasSubstr("rank 1 of 2: gave up: its machine is gone"));
  }
  server.stop();
  runs.join();
}

// Five key heads over two ranks: two on rank 0, three on rank 1, to which all of --kv-memory
// applies. Rank 0's part is two thirds of it, for the same number of tokens, and a text is measured
// by that part. A text of three pages does not fit, although its bytes on rank 0 are no more than
// --kv-memory.
TEST(RanksServer, TextsToEmbedAreMeasuredByWhatTheRankHolds) {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.dim = 80;
  shape.n_heads = 5;
  shape.n_kv_heads = 5;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());
  std::int64_t token_bytes = 0;
  {
    test::LostRank unbounded(directory.path(), 60);
    token_bytes = unbounded.load()->summary().kv_bytes_per_token;
  }
  constexpr std::int64_t kPage = 64;
  const std::int64_t page_bytes = token_bytes * kPage;
  test::LostRank ranks(directory.path(), 60, static_cast<std::uint64_t>(3 * page_bytes));
  ServedOptions served;
  served.name = "tiny";
  const auto model = std::make_shared<const ServedModel>(ranks.load(), served);
  Server server(model, {.port = 0});
  std::thread runs([&] { server.run(); });
  const auto embed = [&](std::int64_t n_tokens) {
    std::string tokens = "5";
    for (std::int64_t i = 1; i < n_tokens; ++i) tokens += ", 5";
    return HttpClient(server.port())
        .post("/v1/embeddings", "{\"input\": [[" + tokens + "]]}", test::kJsonFields);
  };
  EXPECT_EQ(embed(2 * kPage).status, 200);
  const HttpAnswer answer = embed(2 * kPage + 1);
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr("at most " + std::to_string(2 * page_bytes) +
                                     " bytes of KV cache (rank 0's part of --kv-memory)"));
  server.stop();
  runs.join();
}

// Even without a request.
TEST(RanksServer, HealthFindsALostRankByItself) {
  test::LostRank lost(test::ServedModels::get().target(), 2);
  ServedOptions served;
  served.name = "tiny";
  const auto model = std::make_shared<const ServedModel>(lost.load(), served);
  Server server(model, {.port = 0});
  std::thread runs([&] { server.run(); });
  const auto health = [&] { return HttpClient(server.port()).get("/health"); };
  EXPECT_EQ(health().status, 200);
  lost.lose();
  HttpAnswer answer;
  for (int i = 0; i < 600 && answer.status != 503; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    answer = health();
  }
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("rank 1 of 2: gave up: its machine is gone"));
  server.stop();
  runs.join();
}

}  // namespace
}  // namespace outrider::server
