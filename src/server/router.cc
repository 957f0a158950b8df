// SPDX-License-Identifier: Apache-2.0
#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "server/answers/answer_json.h"
#include "server/answers/model_json.h"
#include "server/api_error.h"
#include "server/page/page.h"

namespace outrider::server {
namespace {

ErrorForm form_of(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorForm::anthropic : ErrorForm::openai;
}

// Adds a header to every answer.
class WithHeader final : public HttpReply {
 public:
  WithHeader(std::shared_ptr<HttpReply> reply, std::string name, std::string value)
      : reply_(std::move(reply)), name_(std::move(name)), value_(std::move(value)) {}
  void send(HttpResponse response) override { reply_->send(added(std::move(response))); }
  void begin_stream(HttpResponse head) override { reply_->begin_stream(added(std::move(head))); }
  void write(std::string part) override { reply_->write(std::move(part)); }
  void end_stream() override { reply_->end_stream(); }
  void on_gone(std::function<void()> callback) override { reply_->on_gone(std::move(callback)); }

 private:
  HttpResponse added(HttpResponse response) const {
    response.headers.emplace_back(name_, value_);
    return response;
  }

  std::shared_ptr<HttpReply> reply_;
  std::string name_;
  std::string value_;
};

// A path that ends with a slash matches all names after it.
bool is_at(std::string_view route, std::string_view path) {
  if (!route.ends_with('/') || route == "/") return path == route;
  return path.starts_with(route) && path.find('/', route.size()) == std::string_view::npos;
}

// A request's key: "Authorization: Bearer KEY", or Anthropic's "x-api-key: KEY".
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";  // in any case
  const std::string_view authorization = request.header("authorization");
  const bool is_bearer =
      authorization.size() > kBearer.size() &&
      std::equal(kBearer.begin(), kBearer.end(), authorization.begin(), [](char a, char b) {
        return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
      });
  if (is_bearer) return authorization.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace

namespace {

// Counts the answer that it passes on.
class CountedReply final : public HttpReply {
 public:
  CountedReply(std::shared_ptr<HttpReply> reply, std::shared_ptr<ModelShelf> models,
               std::string_view path)
      : reply_(std::move(reply)), models_(std::move(models)), path_(path) {}
  void send(HttpResponse response) override {
    models_->metrics().answered(path_, response.status);
    reply_->send(std::move(response));
  }
  void begin_stream(HttpResponse head) override {
    models_->metrics().answered(path_, head.status);
    reply_->begin_stream(std::move(head));
  }
  void write(std::string part) override { reply_->write(std::move(part)); }
  void end_stream() override { reply_->end_stream(); }
  void on_gone(std::function<void()> callback) override { reply_->on_gone(std::move(callback)); }

 private:
  std::shared_ptr<HttpReply> reply_;
  std::shared_ptr<ModelShelf> models_;
  std::string_view path_;  // from the table of routes
};

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned char differs = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    differs = static_cast<unsigned char>(differs | (a[i] ^ other));
  }
  return differs == 0;
}

Router::Router(std::shared_ptr<ModelShelf> models, RouterOptions options, Work work, Work load)
    : models_(std::move(models)),
      options_(std::move(options)),
      work_(std::move(work)),
      load_(std::move(load)) {}

// A request with a valid key and path, before its model is known.
struct Router::Request {
  HttpRequest request;
  const Route* route = nullptr;
  ErrorForm form = ErrorForm::openai;
  std::shared_ptr<HttpReply> reply;
  Json body;
};

const std::vector<Router::Route>& Router::routes() {
  static const std::vector<Route> table = [] {
    std::vector<Route> all = {
        {"GET", "/health", true, nullptr},
        {"GET", "/ready", true, nullptr},
        {"GET", "/v1/models", false, nullptr},
        {"GET", "/metrics", false, nullptr},
        {"POST", "/v1/chat/completions", false, chat_completions},
        {"POST", "/v1/completions", false, completions},
        {"POST", "/v1/responses", false, responses},
        {"POST", "/v1/messages", false, messages},
        {"POST", "/v1/messages/count_tokens", false, count_tokens},
        {"POST", "/v1/embeddings", false, embeddings},
        {"POST", "/tokenize", false, tokenize},
        {"POST", "/detokenize", false, detokenize},
        {"POST", "/apply-template", false, apply_template},
        {"POST", "/slots/", false, slots},
    };
    for (const PageFile& file : page_files()) all.push_back({"GET", file.path, true, nullptr});
    return all;
  }();
  return table;
}

bool Router::has_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  const std::string_view key = key_of(request);
  bool found = false;  // compares all keys, so that time does not depend on which matches
  for (const std::string& one : options_.api_keys) {
    if (equal_in_constant_time(key, one)) found = true;
  }
  return found;
}

HttpResponse Router::answer_itself(const Route& route, const HttpRequest& request) const {
  if (is_page(route.path)) return page_response(route.path, request.header("if-none-match"));
  HttpResponse response;
  const bool asks_for_state = route.path == "/health" || route.path == "/ready";
  const std::string failure = asks_for_state ? models_->failure() : "";
  if (!failure.empty()) {
    response.status = 503;
    response.body = dumped({{"status", "failed"}, {"error", failure}});
  } else if (route.path == "/health") {
    response.body = R"({"status":"ok"})";
  } else if (route.path == "/ready") {
    response.status = drains_ ? 503 : 200;
    response.body = drains_ ? R"({"status":"draining"})" : R"({"status":"ready"})";
  } else if (route.path == "/metrics") {
    response.content_type = Metrics::kContentType;
    response.body = models_->metrics().text();
  } else {
    Json list = Json::array();
    for (const ModelShelf::Entry& entry : models_->list()) {
      list.push_back(entry.model ? model_json(*entry.model) : unloaded_model_json(entry.name));
    }
    response.body = dumped({{"object", "list"}, {"data", std::move(list)}});
  }
  return response;
}

void Router::handle(HttpRequest request, const std::shared_ptr<HttpReply>& client) const {
  const ErrorForm form = form_of(request.path);
  const Route* found = nullptr;
  std::string_view allowed;  // the method that this path takes
  for (const Route& route : routes()) {
    if (!is_at(route.path, request.path)) continue;
    allowed = route.method;
    const bool is_head = request.method == "HEAD" && route.method == "GET";
    if (route.method == request.method || is_head) found = &route;
  }
  // Unknown paths share one counter; otherwise clients could fill the table of metrics.
  std::shared_ptr<HttpReply> reply =
      std::make_shared<CountedReply>(client, models_, found == nullptr ? "other" : found->path);
  if (!options_.cors_origin.empty()) {
    reply =
        std::make_shared<WithHeader>(reply, "Access-Control-Allow-Origin", options_.cors_origin);
  }
  const auto fail = [&](const ApiError& error) { reply->send(error_response(error, form)); };
  if (request.method == "OPTIONS" && !options_.cors_origin.empty()) {
    HttpResponse response{.status = 204, .content_type = "", .body = "", .headers = {}};
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    // The star covers all headers but keys. Clients of OpenAI's and Anthropic's send headers of
    // their own.
    response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
    return reply->send(std::move(response));
  }
  if ((found == nullptr || !found->open) && !has_key(request)) {
    return fail(ApiError(401, "expected a valid key: Authorization: Bearer KEY, or x-api-key: KEY",
                         "", "invalid_api_key"));
  }
  if (found == nullptr) {
    if (!allowed.empty()) {
      HttpResponse response = error_response(
          ApiError(405, fmt::format("{} does not take {}", request.path, request.method)), form);
      response.headers.emplace_back("Allow", allowed);
      return reply->send(std::move(response));
    }
    return fail(ApiError(404, fmt::format("there is nothing at {}", request.path)));
  }
  if (found->run == nullptr) return reply->send(answer_itself(*found, request));
  if (drains_) return fail(ApiError(503, "the server is shutting down"));
  const auto waiting = std::make_shared<Request>(Request{
      .request = std::move(request), .route = found, .form = form, .reply = reply, .body = {}});
  work_([this, waiting] { read(waiting); });
}

// Reads the body, and answers with the model that it names.
void Router::read(const std::shared_ptr<Request>& waiting) const {
  try {
    // llama-server's clients erase slots without a body.
    const bool may_be_empty = waiting->route->path == "/slots/";
    waiting->body = may_be_empty && waiting->request.body.empty()
                        ? Json::object()
                        : parse_json(waiting->request.body);
    waiting->request.body = {};  // frees a copy of a conversation of megabytes
    const Json& body = waiting->body;
    std::string name;
    if (const auto model = body.is_object() ? body.find("model") : body.end();
        model != body.end() && model->is_string()) {
      name = model->get<std::string>();
    }
    if (const auto model = models_->loaded(name)) return run(*waiting, model);
    load_([this, waiting, name] {
      try {
        run(*waiting, models_->get(name));
      } catch (...) {
        fail(*waiting);
      }
    });
  } catch (...) {
    fail(*waiting);
  }
}

void Router::run(const Request& waiting, const std::shared_ptr<const ServedModel>& model) {
  try {
    waiting.route->run({.model = model,
                        .request = &waiting.request,
                        .body = &waiting.body,
                        .reply = waiting.reply});
  } catch (...) {
    fail(waiting);
  }
}

// For the current exception.
void Router::fail(const Request& waiting) {
  waiting.reply->send(error_response(api_error_of(std::current_exception()), waiting.form));
}

}  // namespace outrider::server
