// SPDX-License-Identifier: Apache-2.0
// Models behind a whole Server, for its tests: a scripted model and a random pair.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_SERVED_MODELS_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_SERVED_MODELS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "outrider/model.h"
#include "server/server.h"
#include "tests/support/http_client.h"
#include "tests/support/models/script_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {

// A folder for this process with "scripted", the random pair "target" and "draft", and "patient".
class ServedModels {
 public:
  static const Scripts& scripts() {
    static const Scripts kScripts = {
        {"hello", "Hello, my dear friend! How do you do?"},
        {"unicode", "Grüße aus Köln: 😀 und 北京."},
        {"think", "<think>\nIt asks for a number.\n</think>\n\nForty-two is what I say."},
        {"call",
         "Let me see.\n<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\", "
         "\"days\": 3}}\n</tool_call>"},
        {"two calls",
         "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>\n"
         "<tool_call>\n{\"name\": \"time\", \"arguments\": {}}\n</tool_call>"},
        {"broken call", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Os"},
        {"bad bytes",
         "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"\xff\xfe\"}}\n"
         "</tool_call>"},
        {"deep call", "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"a\": " +
                          std::string(98, '[') + std::string(98, ']') + "}}\n</tool_call>"},
        {"json", "{\"a\": 1}"},
        {"nan", "never"},
    };
    return kScripts;
  }
  static const ServedModels& get() {
    static const ServedModels models;
    return models;
  }
  std::string scripted() const { return (root_.path() / "scripted").string(); }
  std::string target() const { return (root_.path() / "target").string(); }
  // Generates for longer than any test lasts.
  std::string patient() const { return (root_.path() / "patient").string(); }
  std::string draft() const { return (root_.path() / "draft").string(); }

 private:
  ServedModels() {
    write_script_model(scripts(), root_.path() / "scripted");
    write_tiny_pair(root_.path());
    TinyShape shape;
    shape.context_length = 1 << 20;
    write_hugging_face(make_tiny_model(shape), root_.path() / "patient");
    write_json({{"chat_template",
                 "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + "
                 "'\n' }}{% endfor %}"}},
               root_.path() / "target" / "tokenizer_config.json");
  }
  TemporaryDirectory root_;
};

// The headers of an API request.
inline const HttpFields kJsonFields = {{"Content-Type", "application/json"}};

class RunningServer {
 public:
  explicit RunningServer(const std::string& model_directory, server::ServedOptions served = {},
                         server::ServerOptions options = {}) {
    served.name = "tiny";
    if (served.sampling.temperature == 0) served.sampling.temperature = 1;
    options.port = 0;
    model_ = std::make_shared<const server::ServedModel>(
        Model::load(
            model_directory,
            {.kv_memory_bytes = served.speculation.drafter_options.kv_memory_bytes, .threads = 1}),
        served);
    server_ = std::make_unique<server::Server>(model_, options);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~RunningServer() {
    server_->stop();
    thread_.join();
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  int port() const { return server_->port(); }
  const server::ServedModel& model() const { return *model_; }
  server::Server& server() { return *server_; }
  HttpClient client() const { return HttpClient(port()); }
  HttpAnswer post(const std::string& path, const Json& body) const {
    return client().post(path, body.dump(), kJsonFields);
  }
  // The answer's JSON; expects status 200.
  nlohmann::json ask(const std::string& path, const Json& body) const {
    const HttpAnswer answer = post(path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return nlohmann::json::parse(answer.body);
  }
  // The events of a stream: their data as JSON, without "[DONE]".
  std::vector<nlohmann::json> stream(const std::string& path, const Json& body) const {
    HttpClient one = client();
    one.send(request_text("POST", path, body.dump(), kJsonFields));
    const HttpAnswer head = one.receive_head();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
    std::vector<nlohmann::json> events;
    while (const auto event = one.next_event()) {
      const std::string data = event->substr(event->find("data: ") + 6);
      if (data != "[DONE]") events.push_back(nlohmann::json::parse(data));
    }
    return events;
  }

 private:
  std::shared_ptr<const server::ServedModel> model_;
  std::unique_ptr<server::Server> server_;
  std::thread thread_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_SERVED_MODELS_H_
