// SPDX-License-Identifier: Apache-2.0
// Limits on sizes and times, and what happens to a client that exceeds them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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
using ::testing::IsEmpty;
using ReplyPtr = std::shared_ptr<HttpReply>;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLong(30'000);

void say_size(const HttpRequest& request, const ReplyPtr& reply) {
  reply->send({.body = std::to_string(request.body.size())});
}

std::string chunks(std::size_t n_bytes, std::size_t chunk_bytes) {
  std::string text;
  for (std::size_t left = n_bytes; left > 0;) {
    const std::size_t n = std::min(left, chunk_bytes);
    char size[32];
    std::snprintf(size, sizeof(size), "%zx\r\n", n);
    text.append(size).append(n, 'b').append("\r\n");
    left -= n;
  }
  return text + "0\r\n\r\n";
}

TEST(HttpLimits, HeadersUpToTheLimitPass) {
  RunningHttpServer server(say_size);
  for (const bool passes : {true, false}) {
    HttpClient client(server.port());
    const std::string fits = "GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + std::string(1900, 'h');
    client.send(fits + (passes ? "" : std::string(300, 'h')) + "\r\n\r\n");
    const HttpAnswer answer = client.receive();
    EXPECT_EQ(answer.status, passes ? 200 : 431);
    EXPECT_EQ(answer.keep_alive, passes);
    EXPECT_EQ(answer.body, passes ? "0" : "431 headers: expected at most 2048 bytes");
  }
}

TEST(HttpLimits, ManySmallHeadersCountTogether) {
  RunningHttpServer server(say_size);
  HttpClient client(server.port());
  std::string text = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 500; ++i) text += "a: b\r\n";
  client.send(text + "\r\n");
  EXPECT_EQ(client.receive().status, 431);
}

TEST(HttpLimits, LinesThatNeverEndAreTooLarge) {
  RunningHttpServer server(say_size);
  for (const std::string begin : {"GET /", "GET / HTTP/1.1\r\na", "GET / HTTP/1.1\r\na: "}) {
    HttpClient client(server.port());
    client.send(begin + std::string(5000, 'x'));
    EXPECT_EQ(client.receive().status, 431) << begin;
  }
}

TEST(HttpLimits, BodiesUpToTheLimitPass) {
  RunningHttpServer server(say_size);
  HttpClient client(server.port());
  EXPECT_EQ(client.post("/", std::string(10'000, 'b')).body, "10000");
  const HttpAnswer answer = client.post("/", std::string(10'001, 'b'));
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.body, "413 body: expected at most 10000 bytes");
  EXPECT_FALSE(answer.keep_alive);
}

TEST(HttpLimits, BodiesInChunksUpToTheLimitPass) {
  RunningHttpServer server(say_size);
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::size_t chunk : {std::size_t{1}, std::size_t{700}, std::size_t{20'000}}) {
    HttpClient client(server.port());
    client.send(head + chunks(10'000, chunk));
    EXPECT_EQ(client.receive().body, "10000");
    client.send(head + chunks(10'001, chunk));
    EXPECT_EQ(client.receive().status, 413) << chunk;
  }
}

TEST(HttpLimits, TheAnswerReachesAClientThatStillSends) {
  RunningHttpServer server(say_size);
  for (int i = 0; i < 10; ++i) {
    HttpClient client(server.port());
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    client.send(std::string(5'000'000, 'b'));
    EXPECT_EQ(client.receive().status, 413);
  }
}

TEST(HttpLimits, AnImpossibleLengthIsNoMemory) {
  RunningHttpServer server(say_size);
  HttpClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n");
  EXPECT_EQ(client.receive().status, 413);
  HttpClient other(server.port());
  other.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nb");
  EXPECT_EQ(other.receive().status, 413);
}

// Sends a byte now and then, so that no single read takes long.
bool ends_while_dripping(HttpClient& client, const std::string& text) {
  for (const char byte : text) {
    if (!client.send(std::string(1, byte))) return true;
    if (client.ends(milliseconds(20))) return true;
  }
  return false;
}

TEST(HttpLimits, SlowHeadersEndTheConnection) {
  HttpLimits limits = short_limits();
  limits.body_time = limits.idle_time = limits.write_time = kLong;
  RunningHttpServer server(say_size, limits);
  HttpClient client(server.port());
  const auto begin = Clock::now();
  EXPECT_TRUE(ends_while_dripping(client, "GET / HTTP/1.1\r\nX: " + std::string(1000, 'x')));
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
  EXPECT_LE(Clock::now() - begin, milliseconds(3000));
}

TEST(HttpLimits, SlowBodiesEndTheConnection) {
  HttpLimits limits = short_limits();
  limits.header_time = limits.idle_time = limits.write_time = kLong;
  RunningHttpServer server(say_size, limits);
  HttpClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  const auto begin = Clock::now();
  EXPECT_TRUE(ends_while_dripping(client, std::string(1000, 'x')));
  EXPECT_GE(Clock::now() - begin, milliseconds(200));
  EXPECT_LE(Clock::now() - begin, milliseconds(3000));
}

TEST(HttpLimits, IdleConnectionsEnd) {
  HttpLimits limits = short_limits();
  limits.header_time = limits.body_time = limits.write_time = kLong;
  RunningHttpServer server(say_size, limits);
  HttpClient fresh(server.port());
  HttpClient used(server.port());
  EXPECT_EQ(used.get("/").status, 200);
  EXPECT_FALSE(used.ends(milliseconds(200)));
  EXPECT_TRUE(used.ends(milliseconds(3000)));
  EXPECT_TRUE(fresh.ends(milliseconds(3000)));
}

TEST(HttpLimits, AReplyMayTakeAsLongAsItTakes) {
  ReplyPtr kept;
  std::atomic<bool> there{false};
  RunningHttpServer server([&](const HttpRequest&, const ReplyPtr& reply) {
    kept = reply;
    there = true;
  });
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  ASSERT_TRUE(becomes_true([&] { return there.load(); }));
  std::this_thread::sleep_for(milliseconds(600));  // longer than each limit
  kept->begin_stream({});
  kept->write("data: 1\n\n");
  EXPECT_EQ(client.receive_head().status, 200);
  std::this_thread::sleep_for(milliseconds(600));
  kept->write("data: 2\n\n");
  kept->end_stream();
  EXPECT_EQ(client.next_event(), "data: 1");
  EXPECT_EQ(client.next_event(), "data: 2");
  EXPECT_EQ(client.next_event(), std::nullopt);
}

TEST(HttpLimits, AClientThatDoesNotReadAWholeReplyIsCutOff) {
  HttpLimits limits = short_limits();
  limits.header_time = limits.body_time = limits.idle_time = kLong;
  RunningHttpServer server(
      [](const HttpRequest&, const ReplyPtr& reply) {
        reply->send({.body = std::string(std::size_t{64} << 20, 'r')});
      },
      limits);
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 1; }));
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
}

TEST(HttpLimits, AClientThatDoesNotReadAStreamIsCutOff) {
  HttpLimits limits = short_limits();
  limits.header_time = limits.body_time = limits.idle_time = kLong;
  std::vector<std::thread> writers;
  std::atomic<int> n_told{0};
  std::atomic<bool> stops{false};
  RunningHttpServer server(
      [&](const HttpRequest&, const ReplyPtr& reply) {
        reply->on_gone([&] { ++n_told; });
        writers.emplace_back([&, reply] {
          reply->begin_stream({});
          while (!stops) {
            reply->write(std::string(16 * 1024, 's'));
            std::this_thread::sleep_for(std::chrono::microseconds(50));
          }
        });
      },
      limits);
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  EXPECT_TRUE(becomes_true([&] { return n_told > 0; }));
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
  stops = true;
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(n_told, 1);
}

// The time-out for writes is too long to matter here.
TEST(HttpLimits, WhatWaitsForASlowClientIsBounded) {
  HttpLimits limits = short_limits();
  limits.write_time = kLong;
  ReplyPtr kept;
  std::atomic<bool> there{false};
  std::atomic<int> n_told{0};
  RunningHttpServer server(
      [&](const HttpRequest&, const ReplyPtr& reply) {
        reply->on_gone([&] { ++n_told; });
        kept = reply;
        there = true;
      },
      limits);
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  ASSERT_TRUE(becomes_true([&] { return there.load(); }));
  kept->begin_stream({});
  const std::string part(16 * 1024, 's');
  std::size_t n_written = 0;
  constexpr std::size_t kMax = std::size_t{64} << 20;  // far more than socket buffers hold
  while (n_told == 0 && n_written < kMax) {
    kept->write(part);
    n_written += part.size();
    if (n_written % (1 << 18) == 0) std::this_thread::sleep_for(milliseconds(2));
  }
  EXPECT_LT(n_written, kMax);
  EXPECT_EQ(n_told, 1);
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 0; }));
}

TEST(HttpLimits, ASlowReaderGetsAllOfItsStream) {
  HttpLimits limits = short_limits();
  limits.unsent_bytes = std::size_t{16} << 20;
  RunningHttpServer server(
      [](const HttpRequest&, const ReplyPtr& reply) {
        reply->begin_stream({});
        for (int i = 0; i < 40; ++i) reply->write("data: " + std::string(8192, 's') + "\n\n");
        reply->end_stream();
      },
      limits);
  HttpClient client(server.port());
  client.send(request_text("GET", "/", ""));
  client.receive_head();
  for (int i = 0; i < 40; ++i) {
    std::this_thread::sleep_for(milliseconds(3));
    EXPECT_EQ(client.next_event()->size(), 8198U);
  }
  EXPECT_EQ(client.next_event(), std::nullopt);
}

TEST(HttpLimits, OneConnectionTooManyIsClosed) {
  HttpLimits limits = short_limits();
  limits.connections = 3;
  limits.idle_time = kLong;
  RunningHttpServer server(say_size, limits);
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server.port());
    EXPECT_EQ(clients.back().get("/").status, 200);
  }
  HttpClient extra(server.port());
  EXPECT_TRUE(extra.ends(milliseconds(2000)));
  EXPECT_EQ(server->n_connections(), 3);
  for (HttpClient& client : clients) EXPECT_EQ(client.get("/").status, 200);
  clients.pop_back();
  EXPECT_TRUE(becomes_true([&] { return server->n_connections() == 2; }));
  EXPECT_EQ(HttpClient(server.port()).get("/").status, 200);
}

}  // namespace
}  // namespace outrider::server
