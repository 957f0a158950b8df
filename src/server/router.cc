#include "server/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "server/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

ErrorForm form_of(std::string_view path) {
  return path.starts_with("/v1/messages") ? ErrorForm::anthropic : ErrorForm::openai;
}

// The key that a request brings: "Authorization: Bearer KEY", or Anthropic's "x-api-key: KEY".
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "Bearer ";
  const std::string_view authorization = request.header("authorization");
  if (authorization.starts_with(kBearer)) return authorization.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace

namespace {

// Counts the answer that passes through.
class CountedReply final : public HttpReply {
 public:
  CountedReply(std::shared_ptr<HttpReply> reply, std::shared_ptr<const ServedModel> model,
               std::string_view path)
      : reply_(std::move(reply)), model_(std::move(model)), path_(path) {}
  void send(HttpResponse response) override {
    model_->metrics().answered(path_, response.status);
    reply_->send(std::move(response));
  }
  void begin_stream(HttpResponse head) override {
    model_->metrics().answered(path_, head.status);
    reply_->begin_stream(std::move(head));
  }
  void write(std::string part) override { reply_->write(std::move(part)); }
  void end_stream() override { reply_->end_stream(); }
  void on_gone(std::function<void()> callback) override { reply_->on_gone(std::move(callback)); }

 private:
  std::shared_ptr<HttpReply> reply_;
  std::shared_ptr<const ServedModel> model_;
  std::string_view path_;  // of the table of routes
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

Router::Router(std::shared_ptr<const ServedModel> model, RouterOptions options, Work work)
    : model_(std::move(model)), options_(std::move(options)), work_(std::move(work)) {}

const std::vector<Router::Route>& Router::routes() {
  static const std::vector<Route> kRoutes = {
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
  };
  return kRoutes;
}

bool Router::has_key(const HttpRequest& request) const {
  if (options_.api_keys.empty()) return true;
  const std::string_view key = key_of(request);
  bool found = false;  // all are looked at, whichever it is
  for (const std::string& one : options_.api_keys) {
    if (equal_in_constant_time(key, one)) found = true;
  }
  return found;
}

HttpResponse Router::answer_itself(const Route& route) const {
  HttpResponse response;
  if (route.path == "/health") {
    response.body = R"({"status":"ok"})";
  } else if (route.path == "/ready") {
    response.status = drains_ ? 503 : 200;
    response.body = drains_ ? R"({"status":"draining"})" : R"({"status":"ready"})";
  } else if (route.path == "/metrics") {
    response.content_type = Metrics::kContentType;
    response.body = model_->metrics().text();
  } else {
    Json one;
    one["id"] = model_->name();
    one["object"] = "model";
    one["created"] = model_->loaded_at();
    one["owned_by"] = "outrider";
    response.body = dumped({{"object", "list"}, {"data", Json::array({std::move(one)})}});
  }
  return response;
}

void Router::handle(HttpRequest request, const std::shared_ptr<HttpReply>& client) const {
  const ErrorForm form = form_of(request.path);
  const Route* found = nullptr;
  bool path_is_known = false;
  for (const Route& route : routes()) {
    if (route.path != request.path) continue;
    path_is_known = true;
    const bool is_head = request.method == "HEAD" && route.method == "GET";
    if (route.method == request.method || is_head) found = &route;
  }
  // Unknown paths count as one: clients would fill the table of metrics otherwise.
  const auto reply =
      std::make_shared<CountedReply>(client, model_, found == nullptr ? "other" : found->path);
  const auto with_cors = [this](HttpResponse response) {
    if (!options_.cors_origin.empty()) {
      response.headers.emplace_back("Access-Control-Allow-Origin", options_.cors_origin);
    }
    return response;
  };
  const auto fail = [&](const ApiError& error) {
    reply->send(with_cors(error_response(error, form)));
  };
  if (request.method == "OPTIONS" && !options_.cors_origin.empty()) {
    HttpResponse response{.status = 204, .content_type = "", .body = "", .headers = {}};
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    response.headers.emplace_back("Access-Control-Allow-Headers",
                                  "Authorization, Content-Type, X-Api-Key");
    return reply->send(with_cors(std::move(response)));
  }
  if ((found == nullptr || !found->open) && !has_key(request)) {
    return fail(ApiError(401, "expected a valid key: Authorization: Bearer KEY, or x-api-key: KEY",
                         "", "invalid_api_key"));
  }
  if (found == nullptr) {
    if (path_is_known) {
      return fail(ApiError(405, fmt::format("{} does not take {}", request.path, request.method)));
    }
    return fail(ApiError(404, fmt::format("there is nothing at {}", request.path)));
  }
  if (found->run == nullptr) return reply->send(with_cors(answer_itself(*found)));
  if (drains_) return fail(ApiError(503, "the server is shutting down"));
  work_([this, found, form, request = std::move(request), reply] {
    try {
      const Json body = parse_json(request.body);
      found->run({.model = model_, .request = &request, .body = &body, .reply = reply});
    } catch (...) {
      reply->send(error_response(api_error_of(std::current_exception()), form));
    }
  });
}

}  // namespace outrider::server
