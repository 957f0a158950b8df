// The server's answers after a process that held a part of its model is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "outrider/ranks.h"
#include "server/server.h"
#include "tests/support/http_client.h"
#include "tests/support/lost_rank.h"
#include "tests/support/served_models.h"

namespace outrider::server {
namespace {

using ::testing::HasSubstr;
using testing::HttpAnswer;
using testing::HttpClient;

TEST(RanksServer, ALostRankIsAnUnavailableModel) {
  testing::LostRank lost(testing::ServedModels::get().target(), 2);
  ServedOptions served;
  served.name = "tiny";
  served.sampling.temperature = 1;
  const auto model = std::make_shared<const ServedModel>(lost.load(), served);
  Server server(model, {.port = 0});
  std::thread runs([&] { server.run(); });
  const auto ask = [&] {
    return HttpClient(server.port())
        .post("/v1/completions", R"({"prompt": "a", "max_tokens": 2})", testing::kJsonFields);
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

// Without any request.
TEST(RanksServer, HealthFindsALostRankByItself) {
  testing::LostRank lost(testing::ServedModels::get().target(), 2);
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
