// SPDX-License-Identifier: Apache-2.0
#include "server/api_error.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "outrider/error.h"

namespace outrider::server {
namespace {

using Json = nlohmann::ordered_json;

// In seconds. No better estimate of a text's end is known.
constexpr const char* kRetryAfter = "1";

const char* openai_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

const char* anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

}  // namespace

ApiError api_error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ApiError& error) {
    return error;
  } catch (const LostRank& error) {
    return {503, error.what(), "", "model_lost"};
  } catch (const LostDevice& error) {
    return {503, error.what(), "", "model_lost"};
  } catch (const NoDeviceMemory& error) {
    return {503, error.what()};
  } catch (const Error& error) {
    return {400, error.what()};
  } catch (const std::bad_alloc&) {
    return {503, "not enough memory"};
  } catch (const std::exception& error) {
    return {500, error.what()};
  }
}

std::string error_body(const ApiError& error, ErrorForm form) {
  Json body;
  if (form == ErrorForm::anthropic) {
    body["type"] = "error";
    body["error"] = {{"type", anthropic_type(error.status())}, {"message", error.what()}};
  } else {
    Json inner;
    inner["message"] = error.what();
    inner["type"] = openai_type(error.status());
    inner["param"] = text_or_null(error.param());
    inner["code"] = text_or_null(error.code());
    body["error"] = std::move(inner);
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HttpResponse error_response(const ApiError& error, ErrorForm form) {
  HttpResponse response;
  response.status = error.status();
  response.body = error_body(error, form);
  if (error.status() == 429 || error.status() == 503) {
    response.headers.emplace_back("Retry-After", kRetryAfter);
  }
  if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
  return response;
}

}  // namespace outrider::server
