// SPDX-License-Identifier: Apache-2.0
// An encoder-decoder in the server: the prompt goes only to the encoder, and so do its limits. The
// model is a tiny T5 with a vocabulary of characters (tests/golden/make/make_t5_models.py).
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/models/served_models.h"

namespace outrider {
namespace {

using nlohmann::json;
using server::ServedOptions;
using test::RunningServer;

std::string path_of_model() { return (test::golden_directory("t5_plain") / "model.gguf").string(); }

std::vector<TokenId> some_prompt(int n_tokens, int seed) {
  std::vector<TokenId> prompt;
  for (int i = 0; i < n_tokens; ++i) {
    prompt.push_back(static_cast<TokenId>(3 + (i * 31 + seed * 17) % 90));
  }
  return prompt;
}

json body_of(const std::vector<TokenId>& prompt, int max_tokens) {
  return {{"prompt", prompt},
          {"max_tokens", max_tokens},
          {"temperature", 0},
          {"ignore_eos", true},
          {"speculation", {{"adaptive", false}}}};
}

TEST(EncoderDecoderServer, AnswersWhatTheEncoderRead) {
  const RunningServer server(path_of_model());
  const std::vector<TokenId> prompt = some_prompt(20, 1);
  json body = body_of(prompt, 24);
  body["n"] = 2;
  const json answer = server.ask("/v1/completions", body);
  Generator generator(Model::load(path_of_model(), {.threads = 1}));
  const GenerateRequest request{.prompt = prompt,
                                .options = {.max_tokens = 24, .ignore_eos = true}};
  const std::string expected = generator.generate({&request, 1}).front().text;
  ASSERT_EQ(answer["choices"].size(), 2u);
  for (const json& choice : answer["choices"]) EXPECT_EQ(choice["text"], expected);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 20);
  EXPECT_NE(server.ask("/v1/completions", body_of(some_prompt(20, 2), 24))["choices"][0]["text"],
            expected);
}

TEST(EncoderDecoderServer, ThePromptTakesNothingOfTheAnswersRoom) {
  ServedOptions served;
  served.context = 60;
  const RunningServer server(path_of_model(), served);
  const auto n_answered = [&](int n_prompt, int max_tokens) {
    const json answer =
        server.ask("/v1/completions", body_of(some_prompt(n_prompt, 1), max_tokens));
    return answer["usage"]["completion_tokens"].get<int>();
  };
  EXPECT_EQ(n_answered(43, 30), 30);
  EXPECT_EQ(n_answered(60, 30), 30);
  EXPECT_EQ(n_answered(43, 200), 59);  // the text begins with one token
  const auto refused = server.post("/v1/completions", body_of(some_prompt(61, 1), 30));
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.body.find("expected at most 60"), std::string::npos) << refused.body;
}

TEST(EncoderDecoderServer, RefusesWhatReadsATextAlone) {
  const RunningServer server(path_of_model());
  json body = body_of(some_prompt(8, 1), 4);
  body["echo"] = true;
  const auto echo = server.post("/v1/completions", body);
  EXPECT_EQ(echo.status, 400);
  EXPECT_NE(echo.body.find("false where an encoder reads the prompt"), std::string::npos)
      << echo.body;
  const auto embedding = server.post("/v1/embeddings", {{"input", some_prompt(8, 1)}});
  EXPECT_EQ(embedding.status, 400);
  EXPECT_NE(embedding.body.find("expected a decoder"), std::string::npos) << embedding.body;
}

// A drafter with a sequence of its own in the target's cache shares the encoder's output there:
// every text that fits without it still fits.
TEST(EncoderDecoderServer, DraftsWhereMemoryIsScarce) {
  const auto page_bytes = static_cast<std::uint64_t>(
      Model::load(path_of_model(), {.threads = 1})->summary().kv_bytes_per_token * 64);
  constexpr int kTexts = 6;
  std::vector<json> bodies;
  for (int i = 0; i < kTexts; ++i) bodies.push_back(body_of(some_prompt(30 + 9 * i, i), 50));
  std::vector<std::string> expected;
  {
    const RunningServer plain(path_of_model());
    for (const json& body : bodies) {
      expected.push_back(plain.ask("/v1/completions", body)["choices"][0]["text"]);
    }
  }
  for (const int n_pages : {11, 13, 15}) {
    SCOPED_TRACE(n_pages);
    ServedOptions served;
    served.drafters = {"layerskip:skip=0"};
    served.speculation.drafter_options.kv_memory_bytes = page_bytes * n_pages;
    const RunningServer server(path_of_model(), served);
    std::vector<std::thread> clients;
    for (int i = 0; i < kTexts; ++i) {
      clients.emplace_back([&, i] {
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(server.ask("/v1/completions", bodies[at])["choices"][0]["text"], expected[at]);
      });
    }
    for (std::thread& client : clients) client.join();
  }
}

}  // namespace
}  // namespace outrider
