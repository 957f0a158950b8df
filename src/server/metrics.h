// What /metrics says: counts and times since the start, in Prometheus' text form. docs/serve.md
// lists the names. All functions are thread-safe.
#ifndef OUTRIDER_SERVER_METRICS_H_
#define OUTRIDER_SERVER_METRICS_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "outrider/batch.h"

namespace outrider::server {

// Of the texts of one model.
class TextMetrics {
 public:
  virtual ~TextMetrics() = default;
  // From a request's arrival to its first token, and from one token to the next. Tokens that one
  // pass accepts come together: all but the first have waited for nothing.
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

  // A request that was answered: `path` as the router knows it.
  void answered(std::string_view path, int status);
  // The metrics of a model's texts. load is asked each time that the metrics are, until the
  // returned pointer has been let go.
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
