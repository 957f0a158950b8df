// SPDX-License-Identifier: Apache-2.0
// The content of /metrics: counts and times since the start, in Prometheus' text format.
// docs/serve.md lists the names. All functions are thread-safe.
#ifndef OUTRIDER_SERVER_METRICS_H_
#define OUTRIDER_SERVER_METRICS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "outrider/batch.h"

namespace outrider::server {

// Metrics of one model's texts.
class TextMetrics {
 public:
  virtual ~TextMetrics() = default;
  // The time from a request's arrival to its first token, and from one token to the next. Tokens
  // accepted by one pass come together: all but the first have a wait of 0.
  virtual void first_token(std::chrono::duration<double> waited) = 0;
  virtual void next_token(std::chrono::duration<double> waited) = 0;
  virtual void ended(const GenerateResult& result, std::size_t n_prompt) = 0;
  virtual void failed() = 0;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  // Counts an answered request; `path` is a path of the router.
  void answered(std::string_view path, int status);
  // The metrics of a model's texts. `load` is called for each text() as long as the returned
  // pointer is held.
  std::shared_ptr<TextMetrics> of_model(const std::string& name, std::function<BatchLoad()> load);
  // Prometheus' text format, version 0.0.4.
  std::string text() const;
  static constexpr const char* kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  struct State;
  class Texts;
  std::shared_ptr<State> state_;
};

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_METRICS_H_
