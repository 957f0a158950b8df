// SPDX-License-Identifier: Apache-2.0
// Paths, methods, keys and origins, on a complete server.
#include "server/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/api_error.h"
#include "tests/support/models/served_models.h"

namespace outrider::server {
namespace {

using nlohmann::json;
using test::HttpAnswer;
using test::HttpClient;
using test::HttpFields;
using test::RunningServer;
using test::ServedModels;
using ::testing::HasSubstr;
using ::testing::Not;

const std::vector<std::pair<std::string, std::string>> kRoutes = {
    {"GET", "/health"},          {"GET", "/ready"},
    {"GET", "/v1/models"},       {"POST", "/v1/chat/completions"},
    {"POST", "/v1/completions"}, {"POST", "/v1/responses"},
    {"POST", "/v1/messages"},    {"POST", "/v1/messages/count_tokens"},
    {"POST", "/tokenize"},       {"POST", "/detokenize"},
    {"POST", "/apply-template"}};

TEST(Keys, CompareByAllOfTheirBytes) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("xbc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("ab", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_in_constant_time("abcabc", "abc"));  // which repeats
  EXPECT_FALSE(equal_in_constant_time("abc", ""));
  EXPECT_FALSE(equal_in_constant_time("", "abc"));
  EXPECT_FALSE(equal_in_constant_time(std::string("abc\0", 4), "abc"));
}

TEST(Router, WithoutAKeyNothingIsSaidButHealth) {
  ServerOptions options;
  options.router.api_keys = {"first-key", "second-key"};
  RunningServer server(ServedModels::get().scripted(), {}, options);
  const std::vector<HttpFields> wrong = {
      {},
      {{"Authorization", "Bearer "}},
      {{"Authorization", "Bearer first-ke"}},
      {{"Authorization", "Bearer first-key1"}},
      {{"Authorization", "Bearer first-keyfirst-key"}},
      {{"Authorization", "first-key"}},
      {{"Authorization", "Basic first-key"}},
      {{"Api-Key", "first-key"}},
      {{"X-Auth", "first-key"}},
      {{"Cookie", "first-key"}},
      {{"X-Api-Key", "first-key "}, {"Authorization", "Bearer x"}},
      {{"Proxy-Authorization", "Bearer first-key"}},
  };
  for (const HttpFields& fields : wrong) {
    HttpClient client = server.client();
    for (const auto& [method, path] : kRoutes) {
      const bool open = path == "/health" || path == "/ready";
      const HttpAnswer answer = client.request(method, path, method == "POST" ? "{}" : "", fields);
      EXPECT_EQ(answer.status, open ? 200 : 401) << path;
      if (open) continue;
      EXPECT_EQ(answer.headers.at("www-authenticate"), "Bearer");
      EXPECT_THAT(answer.body, Not(HasSubstr("tiny"))) << path;
      EXPECT_THAT(answer.body, Not(HasSubstr("first")));
      EXPECT_EQ(json::parse(answer.body)["error"]["type"], "authentication_error");
    }
    // Nor does it tell which paths exist, or that a body is wrong.
    EXPECT_EQ(client.get("/nothing/here", fields).status, 401);
    EXPECT_EQ(client.get("/v1/chat/completions", fields).status, 401);
    EXPECT_EQ(client.post("/v1/chat/completions", "no JSON", fields).status, 401);
    EXPECT_EQ(client.get("/v1/models?key=first-key", fields).status, 401);
  }
  HttpClient client = server.client();
  for (const HttpFields& fields : std::vector<HttpFields>{{{"Authorization", "Bearer first-key"}},
                                                          {{"Authorization", "bearer second-key"}},
                                                          {{"X-Api-Key", "second-key"}}}) {
    EXPECT_EQ(client.get("/v1/models", fields).status, 200);
    EXPECT_EQ(client.post("/tokenize", R"({"content": "x"})", fields).status, 200);
    EXPECT_EQ(client.get("/nothing/here", fields).status, 404);
  }
}

TEST(Router, SaysWhatAPathTakes) {
  RunningServer server(ServedModels::get().scripted());
  HttpClient client = server.client();
  for (const auto& [method, path] : kRoutes) {
    const HttpAnswer other = client.request(method == "GET" ? "POST" : "GET", path, "");
    EXPECT_EQ(other.status, 405) << path;
    EXPECT_EQ(other.headers.at("allow"), method);
    EXPECT_EQ(client.request("DELETE", path, "").status, 405);
    EXPECT_EQ(client.request("HEAD", path).status, method == "GET" ? 200 : 405);
    EXPECT_EQ(client.request(method, path + "/", "{}").status, 404);
    EXPECT_NE(client.request(method, path + "?x=y", "{}").status, 404);
  }
  EXPECT_EQ(client.get("/").status, 200);  // the page
  EXPECT_EQ(client.get("/nowhere").status, 404);
  EXPECT_EQ(client.get("/../../etc/passwd").status, 404);
  const json models = json::parse(client.get("/v1/models").body);
  EXPECT_EQ(models["data"][0]["id"], "tiny");
}

TEST(Router, BodiesHaveToBeJson) {
  RunningServer server(ServedModels::get().scripted());
  HttpClient client = server.client();
  for (const auto& [method, path] : kRoutes) {
    if (method == "GET") continue;
    const bool anthropic = path.starts_with("/v1/messages");
    for (const std::string& body :
         {std::string(), std::string("{"), std::string("[]"), std::string("null"),
          std::string("{} {}"), std::string("{\"a\": \"\xff\"}"), std::string("{\0}", 3),
          std::string(5000, '['), std::string("{'a': 1}"), std::string("{\"a\": NaN}")}) {
      const HttpAnswer answer = client.post(path, body);
      EXPECT_EQ(answer.status, 400) << path << body;
      const json error = json::parse(answer.body);
      EXPECT_EQ(error.value("type", ""), anthropic ? "error" : "");
      EXPECT_EQ(error["error"]["type"], "invalid_request_error");
    }
  }
}

TEST(Router, OtherOriginsAreAllowedWhereAskedFor) {
  const HttpFields origin = {{"Origin", "https://page.example"}};
  {
    RunningServer closed(ServedModels::get().scripted());
    HttpClient client = closed.client();
    EXPECT_FALSE(client.get("/health", origin).headers.contains("access-control-allow-origin"));
    EXPECT_EQ(client.request("OPTIONS", "/v1/models", "", origin).status, 405);
  }
  ServerOptions options;
  options.router.cors_origin = "https://page.example";
  options.router.api_keys = {"key"};
  RunningServer server(ServedModels::get().scripted(), {}, options);
  HttpClient client = server.client();
  const HttpFields keyed = {{"X-Api-Key", "key"}};
  const std::string chat = R"({"messages": [{"role": "user", "content": "hello"}]})";
  for (const HttpAnswer& answer :
       {client.get("/health"), client.get("/v1/models"), client.get("/nothing", keyed),
        client.request("OPTIONS", "/v1/chat/completions", ""),
        client.post("/v1/chat/completions", chat, keyed),
        client.post("/v1/chat/completions", "{", keyed)}) {
    ASSERT_TRUE(answer.headers.contains("access-control-allow-origin")) << answer.body;
    EXPECT_EQ(answer.headers.at("access-control-allow-origin"), "https://page.example");
  }
  client.send(test::request_text("POST", "/v1/chat/completions",
                                 chat.substr(0, chat.size() - 1) + ", \"stream\": true}", keyed));
  EXPECT_TRUE(client.receive_head().headers.contains("access-control-allow-origin"));
}

TEST(Router, ADrainingServerIsNotReady) {
  RunningServer server(ServedModels::get().scripted());
  HttpClient busy = server.client();
  EXPECT_EQ(busy.get("/ready").status, 200);
  server.server().drain();
  EXPECT_TRUE(busy.ends(std::chrono::seconds(5)));
}

}  // namespace
}  // namespace outrider::server
