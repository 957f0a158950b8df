// SPDX-License-Identifier: Apache-2.0
// Bytes that are not HTTP: each gets an error or no answer and is never handled, and the server
// continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/http_client.h"
#include "tests/support/running_http_server.h"

namespace outrider::server {
namespace {

using test::HttpClient;
using test::request_text;
using test::RunningHttpServer;
using test::short_limits;
using ::testing::AnyOf;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using namespace std::string_literals;

const std::string kHost = "Host: x\r\n";

// Requests that must not reach the handler.
std::vector<std::string> corpus() {
  std::vector<std::string> texts = {
      // First lines.
      "GET\r\n\r\n",
      "GET /\r\n\r\n",
      "GET / \r\n\r\n",
      "GET  / HTTP/1.1\r\n\r\n",
      "GET /  HTTP/1.1\r\n\r\n",
      " GET / HTTP/1.1\r\n\r\n",
      "\tGET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1 \r\n\r\n",
      "GET / HTTP/1.1x\r\n\r\n",
      "GET / HTTP/1.\r\n\r\n",
      "GET / HTTP/\r\n\r\n",
      "GET / http/1.1\r\n\r\n",
      "GET / HTTP/0.9\r\n\r\n",
      "GET / HTTP/2.0\r\n\r\n",
      "GET / HTTP/3.0\r\n\r\n",
      "GET / HTTP/1.2\r\n\r\n",
      "GET / HTTP/9.9\r\n\r\n",
      "GET / HTTP/-1.1\r\n\r\n",
      "GET / HTTP/11\r\n\r\n",
      "GET / FTP/1.1\r\n\r\n",
      "GET / HTTP/1,1\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\n\r\n",
      "GET /\x7f HTTP/1.1\r\n\r\n",
      "GET /\0 HTTP/1.1\r\n\r\n"s,
      "GET /a b HTTP/1.1\r\n\r\n",
      "G(T / HTTP/1.1\r\n\r\n",
      "G\0T / HTTP/1.1\r\n\r\n"s,
      "G\xc3\xa9T / HTTP/1.1\r\n\r\n",
      ": / HTTP/1.1\r\n\r\n",
      "/ HTTP/1.1\r\n\r\n",
      "HTTP/1.1 200 OK\r\n\r\n",
      "GET / HTTP/1.1\rX\r\n\r\n",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"s + std::string(64, '\x7f'),  // TLS
      "\x05\x01\x00 socks"s,
      "SSH-2.0-OpenSSH_9.2\r\n",
      "{\"messages\": []}\r\n\r\n",
      "\xff\xfe\xfd\xfc\r\n\r\n",
      std::string(64, '\0'),
  };
  // Headers.
  texts.push_back("GET / HTTP/1.1\r\n\r\n");
  const std::string get = "GET / HTTP/1.1\r\n" + kHost;
  for (const std::string& header : {
           "NoColon\r\n"s,
           ": no name\r\n"s,
           "Sp ace: x\r\n"s,
           "Trailing : x\r\n"s,
           "N\0l: x\r\n"s,
           "Nul: a\0b\r\n"s,
           "Ctl: a\x01"
           "b\r\n"s,
           "Del: a\x7f"
           "b\r\n"s,
           "Cr: a\rb\r\n"s,
           "(x): y\r\n"s,
           "\xc3\xa9: y\r\n"s,
           "Content-Length: x\r\n"s,
           "Content-Length: -1\r\n"s,
           "Content-Length: +1\r\n"s,
           "Content-Length: 0x10\r\n"s,
           "Content-Length: 1 1\r\n"s,
           "Content-Length: 1.0\r\n"s,
           "Content-Length: \r\n"s,
           "Content-Length: 99999999999999999999\r\n"s,
           "Content-Length: 1\r\nContent-Length: 2\r\n"s,
           "Content-Length: 5, 6\r\n"s,
           "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"s,
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"s,
           "Host: y\r\n"s,
           "Transfer-Encoding: gzip\r\n"s,
           "Transfer-Encoding: identity\r\n"s,
           "Transfer-Encoding: chunked, gzip\r\n"s,
           "Transfer-Encoding: xchunked\r\n"s,
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"s,
       }) {
    texts.push_back(get + header + "\r\n");
  }
  // Chunks.
  const std::string chunked = "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked\r\n\r\n";
  for (const char* const body :
       {"x\r\n\r\n", "-1\r\nx\r\n0\r\n\r\n", "\r\n\r\n", "1\r\nab\r\n0\r\n\r\n", "1 \n\r\n",
        "2\r\nab0\r\n\r\n", "0x1\r\na\r\n0\r\n\r\n", "1\ra\r\n0\r\n\r\n", ";\r\n\r\n",
        "fffffffffffffffff\r\na", "1\r\na\r\ng\r\n\r\n"}) {
    texts.push_back(chunked + body);
  }
  return texts;
}

TEST(MalformedRequests, AreRefusedAndNothingElseSuffers) {
  std::atomic<int> n_handled{0};
  RunningHttpServer server(
      [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
        if (request.path != "/good") ++n_handled;
        reply->send({.body = "good"});
      });
  HttpClient good(server.port());
  const std::vector<std::string> texts = corpus();
  ASSERT_GE(texts.size(), 60U);
  for (const std::string& text : texts) {
    HttpClient client(server.port());
    client.send(text);
    client.shut_sending();
    const std::string answer = client.receive_rest();
    EXPECT_THAT(answer, AnyOf(IsEmpty(), StartsWith("HTTP/1.1 4")))
        << ::testing::PrintToString(text);
    EXPECT_EQ(n_handled.exchange(0), 0) << ::testing::PrintToString(text);
    if (!client.send("x")) client.close();
    ASSERT_EQ(good.get("/good").body, "good");
  }
}

// What follows a refused request is not read as a request: it may have been meant as a body.
TEST(MalformedRequests, NothingIsSmuggledBehindThem) {
  std::atomic<int> n_handled{0};
  RunningHttpServer server([&](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    ++n_handled;
    reply->send({});
  });
  const std::string inner = request_text("GET", "/inner", "");
  for (const std::string& head :
       {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"s, "Transfer-Encoding: gzip\r\n"s,
        "Transfer-Encoding: chunked, identity\r\n"s, "Content-Length: 0\r\nContent-Length: 9\r\n"s,
        "Transfer-Encoding: \x0b"
        "chunked\r\n"s}) {
    HttpClient client(server.port());
    client.send("POST / HTTP/1.1\r\n" + kHost + head + "\r\n" + inner);
    EXPECT_THAT(client.receive_rest(), StartsWith("HTTP/1.1 400")) << head;
    EXPECT_EQ(n_handled, 0) << head;
  }
}

// Mutations of valid requests. Some are valid as well and get normal answers. In all cases each
// connection ends and the server continues.
TEST(MalformedRequests, MutationsEndWithAnAnswerOrTheConnection) {
  RunningHttpServer server([](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    if (request.path != "/stream") return reply->send({.body = request.body});
    reply->begin_stream({});
    reply->write(request.body + "\n\n");
    reply->end_stream();
  });
  const std::vector<std::string> valid = {
      request_text("GET", "/a?b=c", ""),
      request_text("POST", "/stream", "{\"a\": 1}", {{"Content-Type", "application/json"}}),
      request_text("POST", "/a", "body", {{"Expect", "100-continue"}}),
      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: "
      "u\r\n\r\n",
      request_text("HEAD", "/stream", "") + request_text("GET", "/b", ""),
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
  };
  std::mt19937 random(36);
  const auto below = [&random](std::size_t n) {
    return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
  };
  HttpClient good(server.port());
  constexpr int kMutations = 1500;
  for (int i = 0; i < kMutations; ++i) {
    std::string text = valid[below(valid.size())];
    for (std::size_t n = 1 + below(4); n > 0; --n) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(below(256));
          break;
        case 1:
          text.erase(at, 1 + below(8));
          break;
        case 2:
          text.insert(at, 1, "\r\n :;,\0\t0f"[below(10)]);
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), below(30)));
          break;
        default:
          text.resize(at + 1);
      }
      if (text.empty()) text = "x";
    }
    HttpClient client(server.port());
    client.send(text);
    if (i % 2 == 0) {
      client.shut_sending();
      EXPECT_THAT(client.receive_rest(), AnyOf(IsEmpty(), StartsWith("HTTP/1.")))
          << ::testing::PrintToString(text);
    } else {
      client.reset();
    }
    if (i % 50 != 0) continue;
    ASSERT_EQ(good.post("/a", "still there").body, "still there");
  }
  EXPECT_TRUE(test::becomes_true([&] { return server->n_connections() <= 1; }));
}

}  // namespace
}  // namespace outrider::server
