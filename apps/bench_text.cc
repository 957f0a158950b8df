#include "bench_text.h"

#include <fmt/format.h>

namespace outrider::cli {

std::string show_duration(double seconds) {
  const auto show = [](double value, const char* unit) {
    const int digits = value < 10 ? 2 : value < 100 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, digits, unit);
  };
  if (seconds < 1e-3) return show(seconds * 1e6, "us");
  if (seconds < 1) return show(seconds * 1e3, "ms");
  return show(seconds, "s");
}

void put_seconds(Json& object, const Spread& seconds) {
  object["seconds"] = seconds.median;
  object["min_seconds"] = seconds.least;
  object["max_seconds"] = seconds.most;
}

Json describe(const Model& model) {
  const ModelSummary& summary = model.summary();
  Json object;
  object["model"] = model.path().string();
  object["kernels"] = summary.kernels;
  object["threads"] = summary.threads;
  object["weights"] = summary.weights;
  object["weight_bytes"] = summary.weight_bytes;
  object["kv"] = summary.kv;
  return object;
}

std::string describe_line(const Model& model, int context) {
  const ModelSummary& summary = model.summary();
  return fmt::format("{}: {} ({:.2f} GB), kv {}, {}, {} thread{}, context {}\n",
                     model.path().string(), summary.weights,
                     static_cast<double>(summary.weight_bytes) * 1e-9, summary.kv, summary.kernels,
                     summary.threads, summary.threads == 1 ? "" : "s", context);
}

std::string dump(const Json& object) {
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace outrider::cli
