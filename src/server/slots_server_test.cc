// SPDX-License-Identifier: Apache-2.0
// Texts saved by one server and restored by another: only the number of tokens run again differs.
// Also time limits of requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/models/served_models.h"
#include "tests/support/running_http_server.h"
#include "tests/support/temporary_directory.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::becomes_true;
using test::HttpAnswer;
using test::request_text;
using test::RunningServer;
using test::ServedModels;
using ::testing::HasSubstr;

class SlotsServer : public ::testing::Test {
 protected:
  ServedOptions options() const {
    ServedOptions options;
    options.drafters = {"suffix"};
    options.batch.max_running = 4;
    options.batch.max_kept = 4;
    options.slot_folder = directory_.path().string();
    return options;
  }
  static json complete(const RunningServer& server, const std::string& prompt, int slot) {
    const HttpAnswer answer = server.post("/v1/completions", {{"prompt", prompt},
                                                              {"max_tokens", 12},
                                                              {"temperature", 0},
                                                              {"logprobs", 2},
                                                              {"ignore_eos", true},
                                                              {"id_slot", slot}});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  }
  static HttpAnswer act(const RunningServer& server, const std::string& slot,
                        const std::string& action, const json& body) {
    return server.post("/slots/" + slot + "?action=" + action, body);
  }

  const test::TemporaryDirectory directory_;
  const std::string prompt_ = std::string(90, 'a') + " b c a b c a b";
};

TEST_F(SlotsServer, ATextIsRestoredByANewServer) {
  json first;
  json second;
  json saved;
  {
    RunningServer server(ServedModels::get().target(), options());
    first = complete(server, prompt_, 2);
    const HttpAnswer answer = act(server, "2", "save", {{"filename", "talk.bin"}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    saved = json::parse(answer.body);
    second = complete(server, prompt_ + "!", 0);
    EXPECT_GT(second["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 90);
  }
  EXPECT_EQ(saved["id_slot"], 2);
  EXPECT_EQ(saved["filename"], "talk.bin");
  EXPECT_EQ(saved["n_written"], std::filesystem::file_size(directory_.path() / "talk.bin"));
  RunningServer server(ServedModels::get().target(), options());
  const HttpAnswer answer = act(server, "1", "restore", {{"filename", "talk.bin"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const json restored = json::parse(answer.body);
  EXPECT_EQ(restored["id_slot"], 1);
  EXPECT_EQ(restored["n_restored"], saved["n_saved"]);
  EXPECT_EQ(restored["n_read"], saved["n_written"]);
  for (const std::string& prompt : {prompt_ + "!", prompt_}) {
    const json again = complete(server, prompt, 0);
    const json& expected = prompt == prompt_ ? first : second;
    EXPECT_EQ(again["choices"][0]["text"], expected["choices"][0]["text"]);
    EXPECT_EQ(again["choices"][0]["logprobs"], expected["choices"][0]["logprobs"]);
    EXPECT_GT(again["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>(), 90);
  }
  EXPECT_GT(json::parse(act(server, "0", "erase", json::object()).body)["n_erased"], 90);
  EXPECT_EQ(act(server, "0", "erase", json::object()).status, 400);
  auto client = server.client();
  client.send(request_text("POST", "/slots/1?action=erase", ""));
  EXPECT_EQ(client.receive().status, 200);  // without a body
}

TEST_F(SlotsServer, WhatCannotBeMeantIsRefused) {
  RunningServer server(ServedModels::get().target(), options());
  complete(server, prompt_, 0);
  const auto status = [&](const std::string& slot, const std::string& action, const json& body) {
    const HttpAnswer answer = act(server, slot, action, body);
    EXPECT_THAT(answer.body, HasSubstr("expected")) << slot << action << body;
    return answer.status;
  };
  const json good = {{"filename", "a"}};
  for (const std::string& name :
       {std::string("../x"), std::string("/etc/x"), std::string("a/b"), std::string(".hidden"),
        std::string(".."), std::string(), std::string("a\\b"), std::string("a\0b", 3),
        std::string(300, 'a')}) {
    EXPECT_EQ(status("0", "save", {{"filename", name}}), 400) << name;
    EXPECT_EQ(status("0", "restore", {{"filename", name}}), 400) << name;
  }
  EXPECT_EQ(status("4", "save", good), 404);
  EXPECT_EQ(status("-1", "save", good), 404);
  EXPECT_EQ(status("x", "save", good), 404);
  EXPECT_EQ(status("", "save", good), 404);
  EXPECT_EQ(act(server, "0/0", "save", good).status, 404);
  EXPECT_EQ(status("0", "dump", good), 400);
  EXPECT_EQ(status("0", "save", json::object()), 400);
  EXPECT_EQ(status("0", "save", {{"filename", 3}}), 400);
  EXPECT_EQ(act(server, "0", "save", {{"filename", "a"}, {"more", 1}}).status, 400);
  EXPECT_EQ(status("3", "save", good), 400);     // no text has ended there
  EXPECT_EQ(status("0", "restore", good), 400);  // no such file
  std::ofstream(directory_.path() / "b") << "no text of ours";
  EXPECT_EQ(status("0", "restore", {{"filename", "b"}}), 400);
  EXPECT_EQ(act(server, "0", "save", good).status, 200);
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"id_slot", 4}}).status, 400);
  EXPECT_EQ(server.client().get("/slots/0").status, 405);

  ServedOptions without = options();
  without.slot_folder.clear();
  RunningServer none(ServedModels::get().target(), without);
  EXPECT_EQ(act(none, "0", "save", good).status, 501);
  ServedOptions forgets = options();
  forgets.batch.max_kept = 0;
  RunningServer keeps_none(ServedModels::get().target(), forgets);
  complete(keeps_none, prompt_, 0);
  EXPECT_EQ(act(keeps_none, "0", "save", good).status, 400);
}

// A request's own limit, the server's, and the lesser of both; while it waits as well.
TEST_F(SlotsServer, ARequestEndsWhenItsTimeIsOver) {
  const json endless = {{"prompt", "x"}, {"max_tokens", 1000000}, {"ignore_eos", true}};
  const auto ask = [&](const RunningServer& server, double max_time) {
    json body = endless;
    if (max_time > 0) body["max_time"] = max_time;
    const HttpAnswer answer = server.post("/v1/completions", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return json::parse(answer.body);
  };
  RunningServer server(ServedModels::get().patient());
  const json cut = ask(server, 0.05);
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
  EXPECT_LT(cut["usage"]["completion_tokens"].get<int>(), 1000000);
  EXPECT_EQ(server.post("/v1/completions", {{"prompt", "x"}, {"max_time", 0}}).status, 400);

  ServedOptions bounded;
  bounded.max_seconds = 0.05;
  bounded.batch.max_running = 1;
  RunningServer brief(ServedModels::get().patient(), bounded);
  ask(brief, 0);
  ask(brief, 1000);
  auto client = brief.client();
  client.send(request_text("POST", "/v1/completions", endless.dump()));
  ask(brief, 0.001);  // queued after it
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_TRUE(becomes_true([&] { return brief.model().loop().n_in_flight() == 0; }));
}

}  // namespace
}  // namespace outrider::server
