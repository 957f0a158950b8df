// Models behind a whole Server, for its tests: one that says what a test wants, and a random pair.
#ifndef OUTRIDER_TESTS_SUPPORT_SERVED_MODELS_H_
#define OUTRIDER_TESTS_SUPPORT_SERVED_MODELS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "outrider/model.h"
#include "server/server.h"
#include "tests/support/chain_model.h"
#include "tests/support/http_client.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_model.h"
#include "tests/support/tiny_pair.h"

namespace outrider::testing {

// Asked "NAME", it says scripts.at(NAME) and ends its turn.
using Scripts = std::map<std::string, std::string>;

inline constexpr const char* kScriptTemplate =
    "{% if tools %}tools: {{ tools | tojson }} answer <tool_call>\n{\"name\": n}\n</tool_call>\n"
    "{% endif %}{% for message in messages %}{{ message['role'] + ': ' + message['content'] + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|go ' + messages[-1]['content'] + '|>' "
    "}}{% endif %}{# <think> </think> #}";

// Every byte is a token, so that any prompt can be encoded; scripts are cut into pieces that are
// tokens of their own, each behind one other. The script "nan" has no logits.
inline void write_script_model(const Scripts& scripts, const std::filesystem::path& directory) {
  ChainVocabulary vocabulary;
  std::set<std::string> taken;
  const auto add = [&](const std::string& piece) {
    taken.insert(piece);
    vocabulary.pieces.push_back(piece);
    return static_cast<int>(vocabulary.pieces.size()) - 1;
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  const int end = add("<|end|>");
  vocabulary.added["<|end|>"] = true;
  std::map<int, int> next;
  int nan_token = -1;
  for (const auto& [name, text] : scripts) {
    const std::string go = "<|go " + name + "|>";
    int last = add(go);
    vocabulary.added[go] = true;
    if (name == "nan") nan_token = last;
    std::vector<std::string> pieces;
    for (std::size_t begin = 0; begin < text.size();) {
      std::string piece = text.substr(begin, 3);
      while (begin + piece.size() < text.size() && taken.contains(piece)) {
        piece += text[begin + piece.size()];
      }
      begin += piece.size();
      for (; taken.contains(piece); pieces.pop_back()) {  // at the end alone
        taken.erase(pieces.back());
        piece = pieces.back() + piece;
      }
      taken.insert(piece);
      pieces.push_back(piece);
    }
    for (const std::string& piece : pieces) {
      const int id = add(piece);
      next[last] = id;
      last = id;
    }
    next[last] = end;
  }
  const std::size_t n = vocabulary.pieces.size();
  std::vector<int> follows(n, end);
  std::set<int> targets = {end};
  for (const auto& [from, to] : next) follows[static_cast<std::size_t>(from)] = to;
  ChainModel model = make_chain_model(follows);
  model.config["max_position_embeddings"] = 2048;
  model.config["eos_token_id"] = end;
  if (nan_token >= 0) {
    auto& values = model.tensors["model.embed_tokens.weight"].second;
    values[static_cast<std::size_t>(nan_token) * (n + 1)] = std::numeric_limits<float>::quiet_NaN();
  }
  write_chain(model, tokenizer_of(vocabulary), directory);
  write_json({{"chat_template", kScriptTemplate}, {"eos_token", "<|end|>"}},
             directory / "tokenizer_config.json");
}

// A folder for this process with "scripted", the random pair "target" and "draft", and
// "patient".
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
  // Writes on for longer than any test lasts.
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

// Asks with headers of an API.
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
  // The answer's JSON; status 200 is expected.
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

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_SERVED_MODELS_H_
