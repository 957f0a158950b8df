// SPDX-License-Identifier: Apache-2.0
// Errors of requests, as clients see them.
#ifndef OUTRIDER_SERVER_API_ERROR_H_
#define OUTRIDER_SERVER_API_ERROR_H_

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

#include "server/http/http_server.h"

namespace outrider::server {

// The error formats of the two families of clients.
enum class ErrorForm { openai, anthropic };

// Thrown by code that reads or runs a request.
class ApiError : public std::runtime_error {
 public:
  // param: the field of the request that caused it; code: an identifier for programs. Both may be
  // empty.
  ApiError(int status, const std::string& message, std::string param = {}, std::string code = {})
      : std::runtime_error(message),
        status_(status),
        param_(std::move(param)),
        code_(std::move(code)) {}

  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

 private:
  int status_;
  std::string param_;
  std::string code_;
};

// Converts any exception. The library's Error and UsageError are errors of the request (400),
// except LostRank, LostDevice and NoDeviceMemory (503); others are errors of the server (500).
ApiError api_error_of(const std::exception_ptr& thrown);

// A JSON object: {"error": {"message", "type", "param", "code"}}, or Anthropic's {"type": "error",
// "error": {"type", "message"}}.
std::string error_body(const ApiError& error, ErrorForm form = ErrorForm::openai);

// The whole response; with Retry-After if a later attempt may succeed (429, 503).
HttpResponse error_response(const ApiError& error, ErrorForm form = ErrorForm::openai);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_API_ERROR_H_
