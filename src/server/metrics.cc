// SPDX-License-Identifier: Apache-2.0
#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace outrider::server {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Draft positions with a counter of their own; deeper ones count for the last.
constexpr int kPlaces = 16;

// In seconds. A token takes some milliseconds with a small model and some hundred with a large one;
// a prompt up to minutes.
const Histogram::BucketBoundaries kTokenTimes = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                 0.05,   0.1,   0.2,   0.5,   1,    2};
const Histogram::BucketBoundaries kFirstTokenTimes = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5,
                                                      1,    2,    5,    10,  30,  60};

Family<Counter>& counters(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Family<Gauge>& gauges(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Family<Histogram>& histograms(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
}

}  // namespace

struct Metrics::State {
  State()
      : requests(counters(registry, "outrider_requests_total", "Requests that were answered")),
        texts(counters(registry, "outrider_texts_total", "Texts that ended, by how they did")),
        prompt_tokens(counters(registry, "outrider_prompt_tokens_total", "Tokens of prompts")),
        cached_tokens(counters(registry, "outrider_cached_prompt_tokens_total",
                               "Tokens of prompts that were in the KV cache already")),
        generated(counters(registry, "outrider_generated_tokens_total", "Tokens generated")),
        passes(counters(registry, "outrider_target_passes_total",
                        "Passes of the target, summed over the texts in them, without prompts")),
        drafted(counters(registry, "outrider_draft_tokens_total", "Tokens drafted")),
        accepted(counters(registry, "outrider_draft_tokens_accepted_total",
                          "Drafted tokens that stand in texts")),
        rounds(counters(registry, "outrider_draft_rounds_total", "Rounds, drafts or none in them")),
        accepted_at(counters(registry, "outrider_draft_accepted_at_place_total",
                             "Rounds whose draft was accepted up to this place or beyond")),
        running(gauges(registry, "outrider_texts_running", "Texts that are being decoded")),
        waiting(gauges(registry, "outrider_texts_waiting", "Texts that wait for their turn")),
        kept(gauges(registry, "outrider_texts_kept", "Ended texts whose KV cache is kept")),
        preempted(gauges(registry, "outrider_preemptions",
                         "Times that a text gave up its KV cache to others")),
        expert_passes(
            gauges(registry, "outrider_expert_passes", "Passes of a mixture of experts, so far")),
        experts_read(gauges(registry, "outrider_experts_read",
                            "Experts that a layer read, on average, summed over these passes")),
        first_token(histograms(registry, "outrider_first_token_seconds",
                               "From a request's arrival to its first token")),
        next_token(
            histograms(registry, "outrider_next_token_seconds", "From one token to the next")) {}

  void read_loads() {
    const std::lock_guard lock(mutex);
    std::erase_if(loads, [](const Load& load) { return load.owner.expired(); });
    for (const Load& load : loads) {
      const auto owner = load.owner.lock();
      if (owner == nullptr) continue;
      const BatchLoad now = load.ask();
      load.running->Set(static_cast<double>(now.n_running));
      load.waiting->Set(static_cast<double>(now.n_waiting));
      load.kept->Set(static_cast<double>(now.n_kept));
      load.preempted->Set(static_cast<double>(now.n_preempted));
      load.expert_passes->Set(static_cast<double>(now.n_expert_passes));
      load.experts_read->Set(now.n_experts_read);
    }
  }

  struct Load {
    std::weak_ptr<TextMetrics> owner;
    std::function<BatchLoad()> ask;
    Gauge* running;
    Gauge* waiting;
    Gauge* kept;
    Gauge* preempted;
    Gauge* expert_passes;
    Gauge* experts_read;
  };

  prometheus::Registry registry;
  Family<Counter>& requests;
  Family<Counter>& texts;
  Family<Counter>& prompt_tokens;
  Family<Counter>& cached_tokens;
  Family<Counter>& generated;
  Family<Counter>& passes;
  Family<Counter>& drafted;
  Family<Counter>& accepted;
  Family<Counter>& rounds;
  Family<Counter>& accepted_at;
  Family<Gauge>& running;
  Family<Gauge>& waiting;
  Family<Gauge>& kept;
  Family<Gauge>& preempted;
  Family<Gauge>& expert_passes;
  Family<Gauge>& experts_read;
  Family<Histogram>& first_token;
  Family<Histogram>& next_token;
  std::mutex mutex;
  std::vector<Load> loads;  // guarded by mutex
};

class Metrics::Texts final : public TextMetrics {
 public:
  Texts(std::shared_ptr<State> state, const std::string& model)
      : state_(std::move(state)),
        model_(model),
        prompt_tokens_(state_->prompt_tokens.Add({{"model", model}})),
        cached_tokens_(state_->cached_tokens.Add({{"model", model}})),
        generated_(state_->generated.Add({{"model", model}})),
        passes_(state_->passes.Add({{"model", model}})),
        drafted_(state_->drafted.Add({{"model", model}})),
        accepted_(state_->accepted.Add({{"model", model}})),
        rounds_(state_->rounds.Add({{"model", model}})),
        first_token_(state_->first_token.Add({{"model", model}}, kFirstTokenTimes)),
        next_token_(state_->next_token.Add({{"model", model}}, kTokenTimes)) {
    for (int place = 1; place <= kPlaces; ++place) {
      accepted_at_[static_cast<std::size_t>(place - 1)] =
          &state_->accepted_at.Add({{"model", model}, {"place", std::to_string(place)}});
    }
  }

  void first_token(std::chrono::duration<double> waited) override {
    first_token_.Observe(waited.count());
  }
  void next_token(std::chrono::duration<double> waited) override {
    next_token_.Observe(waited.count());
  }
  void ended(const GenerateResult& result, std::size_t n_prompt) override {
    state_->texts.Add({{"model", model_}, {"finish_reason", name_of(result.finish_reason)}})
        .Increment();
    const GenerateStatistics& statistics = result.statistics;
    prompt_tokens_.Increment(static_cast<double>(n_prompt));
    cached_tokens_.Increment(static_cast<double>(statistics.reused));
    generated_.Increment(static_cast<double>(statistics.emitted));
    passes_.Increment(static_cast<double>(statistics.target_passes));
    drafted_.Increment(static_cast<double>(statistics.drafted));
    accepted_.Increment(static_cast<double>(statistics.accepted));
    rounds_.Increment(static_cast<double>(result.accepted_per_round.size()));
    std::array<int, kPlaces> reached{};
    for (const int n : result.accepted_per_round) {
      for (int place = 0; place < std::min(n, kPlaces); ++place) {
        ++reached[static_cast<std::size_t>(place)];
      }
    }
    for (std::size_t place = 0; place < reached.size(); ++place) {
      accepted_at_[place]->Increment(reached[place]);
    }
  }
  void failed() override {
    state_->texts.Add({{"model", model_}, {"finish_reason", "error"}}).Increment();
  }

 private:
  std::shared_ptr<State> state_;
  std::string model_;
  Counter& prompt_tokens_;
  Counter& cached_tokens_;
  Counter& generated_;
  Counter& passes_;
  Counter& drafted_;
  Counter& accepted_;
  Counter& rounds_;
  std::array<Counter*, kPlaces> accepted_at_{};
  Histogram& first_token_;
  Histogram& next_token_;
};

Metrics::Metrics() : state_(std::make_shared<State>()) {}

Metrics::~Metrics() = default;

void Metrics::answered(std::string_view path, int status) {
  state_->requests.Add({{"path", std::string(path)}, {"status", std::to_string(status)}})
      .Increment();
}

std::shared_ptr<TextMetrics> Metrics::of_model(const std::string& name,
                                               std::function<BatchLoad()> load) {
  auto metrics = std::make_shared<Texts>(state_, name);
  const std::lock_guard lock(state_->mutex);
  state_->loads.push_back({.owner = metrics,
                           .ask = std::move(load),
                           .running = &state_->running.Add({{"model", name}}),
                           .waiting = &state_->waiting.Add({{"model", name}}),
                           .kept = &state_->kept.Add({{"model", name}}),
                           .preempted = &state_->preempted.Add({{"model", name}}),
                           .expert_passes = &state_->expert_passes.Add({{"model", name}}),
                           .experts_read = &state_->experts_read.Add({{"model", name}})});
  return metrics;
}

std::string Metrics::text() const {
  state_->read_loads();
  return prometheus::TextSerializer().Serialize(state_->registry.Collect());
}

}  // namespace outrider::server
