// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/bench_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  object["min_seconds"] = seconds.min;
  object["max_seconds"] = seconds.max;
}

Json describe(const Model& model) {
  const ModelSummary& summary = model.summary();
  Json object;
  object["model"] = model.path().string();
  object["kernels"] = summary.kernels;
  if (!summary.device.empty()) object["device"] = summary.device;
  object["threads"] = summary.threads;
  object["ranks"] = summary.n_ranks();
  if (summary.n_ranks() > 1) object["rank_threads"] = summary.rank_threads;
  object["weights"] = summary.weights;
  object["weight_bytes"] = summary.weight_bytes;
  if (summary.n_experts > 0) {
    object["experts"] = summary.n_experts;
    object["experts_used"] = summary.n_experts_used;
    object["idle_bytes"] = summary.idle_bytes;
  }
  if (summary.mapped_bytes > 0) {
    object["mapped_bytes"] = summary.mapped_bytes;
    object["expert_memory_bytes"] = summary.expert_memory_bytes;
  }
  object["kv"] = summary.kv;
  return object;
}

namespace {

// "4 threads"; "2 ranks of 4 and 2 threads".
std::string threads_of(const ModelSummary& summary) {
  if (summary.n_ranks() == 1) {
    return fmt::format("{} thread{}", summary.threads, summary.threads == 1 ? "" : "s");
  }
  return fmt::format("{} ranks of {} threads", summary.n_ranks(),
                     fmt::join(summary.rank_threads, " and "));
}

}  // namespace

std::string describe_line(const Model& model, int context) {
  const ModelSummary& summary = model.summary();
  const double n_bytes = static_cast<double>(summary.weight_bytes);
  const std::string of_one_row =
      summary.n_experts == 0
          ? ""
          : fmt::format(", {:.2f} of them read for one row, {} of {} experts",
                        (n_bytes - static_cast<double>(summary.idle_bytes)) * 1e-9,
                        summary.n_experts_used, summary.n_experts);
  const std::string mapped =
      summary.mapped_bytes == 0
          ? ""
          : fmt::format(", {:.2f} of them in the file and {:.2f} for those in use",
                        static_cast<double>(summary.mapped_bytes) * 1e-9,
                        static_cast<double>(summary.expert_memory_bytes) * 1e-9);
  const std::string of_rank = summary.n_ranks() == 1 ? "" : " on rank 0";
  const std::string where = summary.device.empty() ? "" : fmt::format(", on {}", summary.device);
  return fmt::format("{}: {} ({:.2f} GB{}{}{}), kv {}{}, {}, {}, context {}\n",
                     model.path().string(), summary.weights, n_bytes * 1e-9, of_rank, of_one_row,
                     mapped, summary.kv, where, summary.kernels, threads_of(summary), context);
}

std::string dump(const Json& object) {
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace outrider::cli
