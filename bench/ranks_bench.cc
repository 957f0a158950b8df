// SPDX-License-Identifier: Apache-2.0
// Tokens per second of a model on several ranks, plain and drafted, over links of simulated
// latency. Ranks are threads of this process, each with a team of threads. The result is how much
// of the latency drafts hide; no network is measured.
//
//   ranks_bench MODEL DRAFTER [RANKS [THREADS [TOKENS [PROMPT]]]]
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "model/ranks/communicator.h"
#include "model/ranks/delayed_transport.h"
#include "model/ranks/in_process_ranks.h"
#include "outrider/generate.h"
#include "outrider/ranks.h"

namespace outrider {
namespace {

constexpr double kLatencies_us[] = {0, 50, 200, 1000};
constexpr int kRounds = 5;

struct Run {
  std::string model;
  std::string drafter;
  int n_ranks = 2;
  int n_threads = 1;
  int n_tokens = 64;
  std::string prompt = "She opened the letter, and";
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The program of rank 0: plain and drafted decoding in turn, at each latency.
void measure(const Run& run, const std::shared_ptr<Ranks>& ranks, SimulatedLink& link) {
  ModelOptions options{.threads = run.n_threads};
  ModelOptions shared = options;
  shared.ranks = ranks;
  const auto model = Model::load(run.model, shared);
  Generator plain(model, {});
  Generator drafted(model, {.drafter = run.drafter, .drafter_options = options});
  const GenerateOptions request{.max_tokens = run.n_tokens, .ignore_eos = true};
  const std::vector<TokenId> expected = plain.generate(run.prompt, request).ids;
  if (drafted.generate(run.prompt, request).ids != expected) {
    throw std::runtime_error("drafted decoding has other ids than plain decoding");
  }
  fmt::print("{} ranks of {} threads each; medians of {} rounds; latency is simulated\n",
             run.n_ranks, run.n_threads, kRounds);
  fmt::print("{:>12} {:>14} {:>16} {:>20} {:>6}\n", "latency (us)", "plain (tok/s)",
             "drafted (tok/s)", "ratio, of rounds", "tau");
  for (const double latency_us : kLatencies_us) {
    link.latency_seconds = latency_us * 1e-6;
    std::vector<double> plain_speeds;
    std::vector<double> drafted_speeds;
    std::vector<double> ratios;
    double tau = 0;
    for (int round = 0; round < kRounds; ++round) {
      plain_speeds.push_back(plain.generate(run.prompt, request).statistics.tokens_per_second());
      const GenerateResult result = drafted.generate(run.prompt, request);
      drafted_speeds.push_back(result.statistics.tokens_per_second());
      ratios.push_back(drafted_speeds.back() / plain_speeds.back());
      tau = result.statistics.tau();
    }
    const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
    const std::string spread =
        fmt::format("{:.2f} ({:.2f} to {:.2f})", median(ratios), *least, *most);
    fmt::print("{:>12.0f} {:>14.2f} {:>16.2f} {:>20} {:>6.2f}\n", latency_us, median(plain_speeds),
               median(drafted_speeds), spread, tau);
    std::fflush(stdout);
  }
  link.latency_seconds = 0;
}

int run(const Run& run) {
  const auto link = std::make_shared<SimulatedLink>();
  std::vector<std::unique_ptr<Transport>> ends = make_in_process_ranks(run.n_ranks);
  std::vector<std::thread> threads;
  std::exception_ptr failure;
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto ranks = std::make_shared<Ranks>(
          std::make_shared<Communicator>(delay(std::move(ends[rank]), link), 600));
      try {
        if (ranks->leads()) return measure(run, ranks, *link);
        ModelOptions options{.threads = run.n_threads};
        options.ranks = ranks;
        follow(run.model, options);
      } catch (const std::exception& error) {
        if (ranks->leads()) failure = std::current_exception();
        ranks->give_up(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return 0;
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  const auto number = [&](int place, int otherwise) {
    return argc > place ? std::max(std::atoi(argv[place]), 1) : otherwise;
  };
  if (argc < 3) {
    fmt::print(stderr, "usage: ranks_bench MODEL DRAFTER [RANKS [THREADS [TOKENS [PROMPT]]]]\n");
    return 2;
  }
  try {
    outrider::Run run{.model = argv[1],
                      .drafter = argv[2],
                      .n_ranks = number(3, 2),
                      .n_threads = number(4, 1),
                      .n_tokens = number(5, 64)};
    if (argc > 6) run.prompt = argv[6];
    return outrider::run(run);
  } catch (const std::exception& error) {
    fmt::print(stderr, "ranks_bench: {}\n", error.what());
    return 1;
  }
}
