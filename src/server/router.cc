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

// Adds a header to whatever is answered.
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

// The key that a request brings: "Authorization: Bearer KEY", or Anthropic's "x-api-key: KEY".
std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";  // in any letters
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
      {"POST", "/v1/chat/completions", false, chat_completions},
      {"POST", "/v1/completions", false, completions},
      {"POST", "/v1/responses", false, responses},
      {"POST", "/v1/messages", false, messages},
      {"POST", "/v1/messages/count_tokens", false, count_tokens},
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
  std::shared_ptr<HttpReply> reply = client;
  if (!options_.cors_origin.empty()) {
    reply =
        std::make_shared<WithHeader>(client, "Access-Control-Allow-Origin", options_.cors_origin);
  }
  const auto fail = [&](const ApiError& error) { reply->send(error_response(error, form)); };
  if (request.method == "OPTIONS" && !options_.cors_origin.empty()) {
    HttpResponse response{.status = 204, .content_type = "", .body = "", .headers = {}};
    response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, OPTIONS");
    // The star is for all but keys. Clients of OpenAI's and Anthropic's send headers of their own.
    response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
    return reply->send(std::move(response));
  }
  const Route* found = nullptr;
  std::string_view allowed;  // the method that this path takes
  for (const Route& route : routes()) {
    if (route.path != request.path) continue;
    allowed = route.method;
    const bool is_head = request.method == "HEAD" && route.method == "GET";
    if (route.method == request.method || is_head) found = &route;
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
  if (found->run == nullptr) return reply->send(answer_itself(*found));
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
