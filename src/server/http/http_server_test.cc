// SPDX-License-Identifier: Apache-2.0
// Clients' answers, how connections continue and end, and what handlers are told.
#include "server/http/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "outrider/error.h"
#include "tests/support/http_client.h"
#include "tests/support/running_http_server.h"

namespace outrider::server {
namespace {

using std::chrono::milliseconds;
using test::becomes_true;
using test::HttpAnswer;
using test::HttpClient;
using test::request_text;
using test::RunningHttpServer;
using test::short_limits;
using ::testing::HasSubstr;
using ReplyPtr = std::shared_ptr<HttpReply>;

// Answers with the request: "METHOD PATH?QUERY [x-test] body".
void echo(const HttpRequest& request, const ReplyPtr& reply) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = request.method + " " + request.path + "?" + request.query + " [" +
                  std::string(request.header("x-test")) + "] " + request.body;
  response.headers.emplace_back("X-Peer", request.peer);
  reply->send(std::move(response));
}

// Keeps the replies of requests: tests answer them.
class Keeper {
 public:
  void operator()(const HttpRequest& request, const ReplyPtr& reply) {
    const std::lock_guard lock(mutex_);
    replies_.push_back(reply);
    paths_.push_back(request.path);
  }
  HttpHandler handler() {
    return [this](const HttpRequest& request, const ReplyPtr& reply) { (*this)(request, reply); };
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return replies_.size();
  }
  // Waits for that one.
  ReplyPtr take(std::size_t index = 0) {
    EXPECT_TRUE(becomes_true([&] { return size() > index; }));
    const std::lock_guard lock(mutex_);
    return std::move(replies_.at(index));
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ReplyPtr> replies_;
  std::vector<std::string> paths_;
};

TEST(HttpServer, AnswersWithWhatTheRequestSaid) {
  RunningHttpServer server(echo);
  HttpClient client(server.port());
  const HttpAnswer answer = client.post("/a/b%20c?x=1&y=?", "hello", {{"X-Test", "v"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /a/b%20c?x=1&y=? [v] hello");
  EXPECT_EQ(answer.headers.at("content-type"), "text/plain");
  EXPECT_EQ(answer.headers.at("x-peer"), "127.0.0.1");
  EXPECT_EQ(client.request("PURGE", "/", "").body, "PURGE /? [] ");  // any method
  EXPECT_EQ(client.get("http://x:8080/a/b?c=http://d").body, "GET /a/b?c=http://d [] ");
  EXPECT_EQ(client.get("http://x").body, "GET /? [] ");
  EXPECT_EQ(client.get("HTTPS://x?y=1").body, "GET /?y=1 [] ");
}

TEST(HttpServer, KeepsConnectionsAliveUnlessTheyAskForTheEnd) {
  RunningHttpServer server(echo);
  HttpClient client(server.port());
  for (int i = 0; i < 5; ++i) {
    const HttpAnswer answer = client.post("/", std::to_string(i));
    EXPECT_TRUE(answer.keep_alive);
    EXPECT_EQ(answer.body, "POST /? [] " + std::to_string(i));
  }
  EXPECT_FALSE(client.get("/", {{"Connection", "close"}}).keep_alive);
  EXPECT_TRUE(client.ends(milliseconds(200)));
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/0", "") + request_text("POST", "/1", "body") +
              request_text("GET", "/2", ""));
  for (std::size_t i = 0; i < 3; ++i) {
    const ReplyPtr reply = keeper.take(i);
    EXPECT_EQ(keeper.size(), i + 1) << "the next was begun before this one was answered";
    reply->send({.status = 200, .content_type = "text/plain", .body = std::to_string(i)});
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.receive().body, std::to_string(i));
}

TEST(HttpServer, RequestsThatComeWhileAReplyIsMadeAreNotLost) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/0", ""));
  const ReplyPtr first = keeper.take(0);
  client.send(request_text("GET", "/1", ""));
  std::this_thread::sleep_for(milliseconds(20));
  first->send({.body = "0"});
  keeper.take(1)->send({.body = "1"});
  EXPECT_EQ(client.receive().body, "0");
  EXPECT_EQ(client.receive().body, "1");
}

TEST(HttpServer, LooksPastAnEmptyLineBeforeARequest) {
  RunningHttpServer server(echo);
  HttpClient client(server.port());
  client.send(request_text("POST", "/", "x") + "\r\n" + request_text("GET", "/y", ""));
  EXPECT_EQ(client.receive().body, "POST /? [] x");
  EXPECT_EQ(client.receive().body, "GET /y? [] ");
}

TEST(HttpServer, AnswersHeadWithoutABody) {
  RunningHttpServer server([](const HttpRequest& request, const ReplyPtr& reply) {
    if (request.path == "/whole") return echo(request, reply);
    reply->begin_stream({.content_type = "text/event-stream"});
    reply->write("data: x\n\n");
    reply->end_stream();
  });
  HttpClient client(server.port());
  const HttpAnswer whole = client.request("HEAD", "/whole");
  EXPECT_EQ(whole.headers.at("content-length"), std::to_string(sizeof("HEAD /whole? [] ") - 1));
  const HttpAnswer stream = client.request("HEAD", "/stream");
  EXPECT_EQ(stream.headers.at("content-type"), "text/event-stream");
  // A body, if there were one, would come before this.
  EXPECT_EQ(client.request("POST", "/whole", "z").body, "POST /whole? [] z");
}

TEST(HttpServer, SpeaksHttp10) {
  RunningHttpServer server([](const HttpRequest& request, const ReplyPtr& reply) {
    if (request.path == "/whole") return echo(request, reply);
    reply->begin_stream({.content_type = "text/event-stream"});
    reply->write("data: x\n\n");
    reply->write("data: y\n\n");
    reply->end_stream();
  });
  {
    HttpClient client(server.port());
    client.send("GET /whole HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.version, 10U);
    EXPECT_TRUE(answer.keep_alive);
    client.send("GET /whole HTTP/1.0\r\n\r\n");
    EXPECT_FALSE(client.receive().keep_alive);
    EXPECT_TRUE(client.ends(milliseconds(200)));
  }
  HttpClient client(server.port());
  client.send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string text = client.receive_rest();  // it ends with the connection
  EXPECT_THAT(text, ::testing::EndsWith("\r\n\r\ndata: x\n\ndata: y\n\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("chunked")));
}

TEST(HttpServer, StreamsPartsAsTheyAreWritten) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  reply->begin_stream({.status = 201, .content_type = "text/event-stream"});
  const HttpAnswer head = client.receive_head();
  EXPECT_EQ(head.status, 201);
  EXPECT_EQ(head.headers.at("transfer-encoding"), "chunked");
  for (int i = 0; i < 100; ++i) {
    reply->write("data: " + std::to_string(i) + "\n\n");
    reply->write("");  // an empty chunk would end the body
    EXPECT_EQ(client.next_event(), "data: " + std::to_string(i));
  }
  reply->end_stream();
  reply->write("data: behind the end\n\n");
  EXPECT_EQ(client.next_event(), std::nullopt);
  client.send(request_text("GET", "/", ""));
  keeper.take(1)->send({.body = "goes on"});
  EXPECT_EQ(client.receive().body, "goes on");
}

TEST(HttpServer, WritesOfManyThreadsArriveWholeAndOnce) {
  Keeper keeper;
  HttpLimits limits = short_limits();
  limits.unsent_bytes = 64 * 1024 * 1024;
  RunningHttpServer server(keeper.handler(), limits);
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  reply->begin_stream({});
  constexpr int kThreads = 8;
  constexpr int kWrites = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&reply, t] {
      for (int i = 0; i < kWrites; ++i) {
        reply->write(std::to_string(t * kWrites + i) + std::string(64, '.') + "\n\n");
      }
    });
  }
  std::set<int> seen;
  client.receive_head();
  std::vector<int> last(kThreads, -1);
  for (int i = 0; i < kThreads * kWrites; ++i) {
    const int number = std::stoi(client.next_event().value());
    EXPECT_TRUE(seen.insert(number).second);
    EXPECT_GT(number, last[static_cast<std::size_t>(number / kWrites)]) << "out of order";
    last[static_cast<std::size_t>(number / kWrites)] = number;
  }
  for (std::thread& thread : threads) thread.join();
  reply->end_stream();
  EXPECT_EQ(client.next_event(), std::nullopt);
}

TEST(HttpServer, AnswersFromOtherThreadsAtOnce) {
  std::vector<std::thread> threads;
  RunningHttpServer server([&](const HttpRequest& request, const ReplyPtr& reply) {
    threads.emplace_back([request, reply] { echo(request, reply); });
  });
  HttpClient client(server.port());
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(client.post("/", std::to_string(i)).body, "POST /? [] " + std::to_string(i));
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(HttpServer, ADroppedReplyIsAnError) {
  RunningHttpServer server([](const HttpRequest&, const ReplyPtr&) {});
  HttpClient client(server.port());
  const HttpAnswer answer = client.get("/");
  EXPECT_EQ(answer.status, 500);
  EXPECT_THAT(answer.body, HasSubstr("500 the request was not answered"));
  EXPECT_EQ(client.get("/").status, 500);  // on the same connection
}

TEST(HttpServer, ADroppedStreamDoesNotLookComplete) {
  RunningHttpServer server([](const HttpRequest&, const ReplyPtr& reply) {
    reply->begin_stream({});
    reply->write("data: half\n\n");
  });
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  client.receive_head();
  EXPECT_EQ(client.next_event(), "data: half");
  EXPECT_THROW(client.next_event(), std::runtime_error);
}

TEST(HttpServer, TheFirstAnswerCounts) {
  RunningHttpServer server([](const HttpRequest&, const ReplyPtr& reply) {
    reply->send({.body = "first"});
    reply->send({.body = "second"});
    reply->begin_stream({});
    reply->write("third");
    reply->end_stream();
  });
  HttpClient client(server.port());
  EXPECT_EQ(client.get("/").body, "first");
  EXPECT_EQ(client.get("/").body, "first");
}

TEST(HttpServer, AHandlerThatThrowsEndsItsConnectionAlone) {
  RunningHttpServer server([](const HttpRequest& request, const ReplyPtr& reply) {
    if (request.path == "/throw") throw std::runtime_error("by the handler");
    echo(request, reply);
  });
  HttpClient other(server.port());
  EXPECT_EQ(other.get("/").status, 200);
  HttpClient client(server.port());
  client.send(request_text("GET", "/throw", ""));
  client.receive_rest();
  EXPECT_EQ(other.get("/").status, 200);
}

TEST(HttpServer, SaysGoOnToClientsThatWaitForIt) {
  RunningHttpServer server(echo);
  HttpClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 100);
  client.send("abc");
  EXPECT_EQ(client.receive().body, "POST /? [] abc");
}

TEST(HttpServer, DoesNotSayGoOnToABodyThatIsTooLarge) {
  RunningHttpServer server(echo);
  HttpClient client(server.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.receive().status, 413);
}

class Gone : public ::testing::TestWithParam<bool> {};  // the client resets the connection

void leave(HttpClient& client, bool resets) {
  if (resets) {
    client.reset();
  } else {
    client.close();
  }
}

TEST_P(Gone, IsToldOnceWhileAReplyIsAwaited) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  std::atomic<int> n_told{0};
  reply->on_gone([&] { ++n_told; });
  leave(client, GetParam());
  EXPECT_TRUE(becomes_true([&] { return n_told > 0; }));
  reply->send({});
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
  EXPECT_EQ(n_told, 1);
}

TEST_P(Gone, IsToldAtOnceWhereTheClientHasLeftBefore) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  leave(client, GetParam());
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
  int n_told = 0;
  reply->on_gone([&] { ++n_told; });
  EXPECT_EQ(n_told, 1);
  reply->send({});
}

TEST_P(Gone, IsToldInTheMiddleOfAStream) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  std::atomic<int> n_told{0};
  reply->on_gone([&] { ++n_told; });
  reply->begin_stream({});
  reply->write("data: 1\n\n");
  client.receive_head();
  client.next_event();
  leave(client, GetParam());
  EXPECT_TRUE(becomes_true([&] { return n_told > 0; }));
  reply->write("data: 2\n\n");
  reply->end_stream();
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
  EXPECT_EQ(n_told, 1);
}

// Its next request has arrived already: the connection is not read while the reply is made.
TEST_P(Gone, IsToldOfAClientThatHasSentMore) {
  for (const bool at_once : {true, false}) {
    Keeper keeper;
    RunningHttpServer server(keeper.handler());
    HttpClient client(server.port());
    const std::string next = request_text("GET", "/next", "");
    client.send(request_text("GET", "/", "") + (at_once ? next : ""));
    const ReplyPtr reply = keeper.take();
    std::atomic<int> n_told{0};
    reply->on_gone([&] { ++n_told; });
    if (!at_once) client.send(next);
    std::this_thread::sleep_for(milliseconds(20));
    EXPECT_EQ(n_told, 0);
    leave(client, GetParam());
    EXPECT_TRUE(becomes_true([&] { return n_told > 0; })) << at_once;
    EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
    EXPECT_EQ(n_told, 1);
    EXPECT_EQ(keeper.size(), 1U);
  }
}

TEST_P(Gone, IsNotToldOfACompleteReply) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  const ReplyPtr reply = keeper.take();
  int n_told = 0;
  reply->on_gone([&] { ++n_told; });
  reply->send({.body = "all"});
  EXPECT_EQ(client.receive().body, "all");
  leave(client, GetParam());
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
  reply->on_gone([&] { ++n_told; });
  EXPECT_EQ(n_told, 0);
}

INSTANTIATE_TEST_SUITE_P(Client, Gone, ::testing::Bool());

TEST(HttpServer, DrainLetsRepliesOutAndClosesIdleConnections) {
  Keeper keeper;
  RunningHttpServer server(keeper.handler());
  HttpClient idle(server.port());
  HttpClient streams(server.port());
  HttpClient waits(server.port());
  streams.send(request_text("GET", "/stream", ""));
  const ReplyPtr stream = keeper.take(0);
  waits.send(request_text("GET", "/wait", ""));
  const ReplyPtr whole = keeper.take(1);
  stream->begin_stream({});
  stream->write("data: 1\n\n");
  streams.receive_head();
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 3; }));
  server->drain();
  EXPECT_TRUE(idle.ends(milliseconds(300)));
  EXPECT_THROW(
      {
        HttpClient late(server.port());
        late.get("/");
      },
      std::exception);
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 2; }));
  stream->write("data: 2\n\n");
  EXPECT_EQ(streams.next_event(), "data: 1");
  EXPECT_EQ(streams.next_event(), "data: 2");
  stream->end_stream();
  EXPECT_EQ(streams.next_event(), std::nullopt);
  EXPECT_TRUE(streams.ends(milliseconds(300)));
  whole->send({.body = "late"});
  const HttpAnswer answer = waits.receive();
  EXPECT_EQ(answer.body, "late");
  EXPECT_FALSE(answer.keep_alive);
  server.join();
}

TEST(HttpServer, DrainEndsAnIdleServerAtOnce) {
  RunningHttpServer server(echo);
  HttpClient(server.port()).get("/");
  server->drain();
  server->drain();
  server.join();
  EXPECT_EQ(server->n_connections(), 0);
}

TEST(HttpServer, StopEndsTheServerWhateverGoesOn) {
  Keeper keeper;
  ReplyPtr kept;
  ReplyPtr streams;
  std::atomic<int> n_told{0};
  {
    RunningHttpServer server(keeper.handler());
    HttpClient client(server.port());
    client.send(request_text("GET", "/", ""));
    kept = keeper.take(0);
    kept->on_gone([&] { ++n_told; });
    HttpClient other(server.port());
    other.send(request_text("GET", "/", ""));
    streams = keeper.take(1);
    streams->begin_stream({});
    streams->write("data: 1\n\n");
    server->stop();
    server.join();
  }
  EXPECT_EQ(n_told, 1);
  // Replies outlive their server.
  kept->send({.body = "to nobody"});
  streams->write("data: 2\n\n");
  streams->end_stream();
  kept.reset();
  streams.reset();
}

TEST(HttpServer, RepliesAreMadeWhileTheServerIsDestroyed) {
  for (int round = 0; round < 30; ++round) {
    Keeper keeper;
    std::thread writer;
    {
      RunningHttpServer server(keeper.handler());
      HttpClient client(server.port());
      client.send(request_text("GET", "/", ""));
      writer = std::thread([reply = keeper.take()] {
        reply->begin_stream({});
        for (int i = 0; i < 200; ++i) reply->write("data: x\n\n");
        reply->end_stream();
      });
      if (round % 2 == 0) client.receive_head();
    }
    writer.join();
  }
}

TEST(HttpServer, RefusesAddressesThatItCannotListenAt) {
  RunningHttpServer taken(echo);
  HttpServer server(short_limits(), echo, [](int, std::string_view) { return std::string(); });
  EXPECT_THROW(server.listen("127.0.0.1", taken.port()), Error);
  HttpServer other(short_limits(), echo, [](int, std::string_view) { return std::string(); });
  EXPECT_THROW(other.listen("no-such-host.invalid", 0), Error);
}

TEST(HttpServer, ListensAtAHostsName) {
  HttpServer server(short_limits(), echo, [](int, std::string_view) { return std::string(); });
  EXPECT_GT(server.listen("localhost", 0), 0);
}

}  // namespace
}  // namespace outrider::server
