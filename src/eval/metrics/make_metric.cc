// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/make_metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/spec.h"
#include "eval/metrics/bleu.h"
#include "eval/metrics/chrf.h"
#include "eval/metrics/exact_match.h"
#include "eval/metrics/numeric_answer.h"
#include "eval/metrics/pass_at.h"
#include "eval/metrics/perplexity.h"
#include "eval/metrics/rouge.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

constexpr const char* kOperation = "read metric";
constexpr std::string_view kPass = "pass@";

// 0 if the name is none of "pass@K".
int attempts_of(std::string_view name) {
  if (!name.starts_with(kPass)) return 0;
  name.remove_prefix(kPass.size());
  int k = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), k);
  return error == std::errc() && end == name.data() + name.size() && k > 0 ? k : 0;
}

// Metrics without parameters.
template <typename Kind>
std::unique_ptr<Metric> plain(const Spec& spec) {
  spec.require_no_value();
  spec.require_keys({});
  return std::make_unique<Kind>();
}

}  // namespace

std::vector<std::unique_ptr<Metric>> make_metrics(const Task& task, const MetricOptions& options) {
  std::vector<std::unique_ptr<Metric>> metrics;
  std::shared_ptr<const PythonRunner> runner;
  for (const std::string& text : task.metrics) {
    const Spec spec = Spec::parse("metric", text);
    if (const int k = attempts_of(spec.name()); k > 0) {
      if (!task.program.has_field("completion")) {
        throw Error(kOperation, task.name, "a \"program\" with {completion} for pass@k", "none");
      }
      if (!runner && !options.only_score) {
        runner = std::make_shared<PythonRunner>(options.allow_network);
      }
      metrics.push_back(std::make_unique<PassAt>(k, task.program, runner));
    } else if (spec.name() == "bleu") {
      metrics.push_back(plain<Bleu>(spec));
    } else if (spec.name() == "chrf") {
      metrics.push_back(plain<Chrf>(spec));
    } else if (spec.name() == "rouge") {
      metrics.push_back(plain<Rouge>(spec));
    } else if (spec.name() == "numeric") {
      metrics.push_back(plain<NumericAnswer>(spec));
    } else if (spec.name() == "perplexity") {
      metrics.push_back(plain<Perplexity>(spec));
    } else if (spec.name() == "squad") {
      spec.require_no_value();
      spec.require_keys({"no-answer"});
      metrics.push_back(std::make_unique<ExactMatch>(spec.text("no-answer").value_or("")));
    } else {
      throw Error(kOperation, task.name, "bleu, chrf, rouge, squad, numeric, pass@K or perplexity",
                  spec.name());
    }
    const Metric& metric = *metrics.back();
    if (metric.needs_references() && task.references.empty()) {
      throw Error(kOperation, task.name, fmt::format("a \"reference\" for {}", metric.name()),
                  "none");
    }
    if (metric.needs_likelihood() != metrics.front()->needs_likelihood()) {
      throw Error(kOperation, task.name, "perplexity alone", "other metrics beside it");
    }
  }
  return metrics;
}

}  // namespace outrider::eval
