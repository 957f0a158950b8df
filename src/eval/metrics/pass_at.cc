// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/pass_at.h"

#include <fmt/format.h>

#include <utility>

#include "outrider/error.h"

namespace outrider::eval {

double pass_at_k(int n, int c, int k) {
  if (n - c < k) return 1;
  double all_wrong = 1;
  for (int i = n - c + 1; i <= n; ++i) all_wrong *= 1 - double(k) / i;
  return 1 - all_wrong;
}

std::string_view code_of(std::string_view answer) {
  constexpr std::string_view kFence = "```";
  const std::size_t fence = answer.find(kFence);
  if (fence == std::string_view::npos) return answer;
  const std::size_t line_end = answer.find('\n', fence);
  if (line_end == std::string_view::npos) return answer.substr(0, fence);
  // With an odd number of fences, one ends the block that the prompt began, if text precedes it and
  // no language follows it.
  int n_fences = 0;
  for (std::size_t at = fence; at != std::string_view::npos;
       at = answer.find(kFence, at + kFence.size())) {
    ++n_fences;
  }
  const bool has_language = answer.find_first_not_of(" \t\r", fence + kFence.size()) != line_end;
  const bool has_text = answer.find_first_not_of(" \t\r\n") != fence;
  if (n_fences % 2 == 1 && has_text && !has_language) return answer.substr(0, fence);
  const std::string_view code = answer.substr(line_end + 1);
  return code.substr(0, code.find(kFence));
}

PassAt::PassAt(int k, Template program, std::shared_ptr<const PythonRunner> runner)
    : k_(k),
      name_(fmt::format("pass@{}", k)),
      program_(std::move(program)),
      runner_(std::move(runner)) {}

std::vector<double> PassAt::count(const Judged& judged) const {
  const int n = static_cast<int>(judged.texts.size());
  if (n < k_)
    throw Error("judge answer", name_, fmt::format("{} samples", k_), fmt::format("{}", n));
  int n_right = 0;
  for (const std::string& text : judged.texts) {
    const std::string program = program_.render(judged.item, {{"completion", code_of(text)}});
    if (runner_->run(program).kind == ProgramOutcome::Kind::passed) ++n_right;
  }
  return {pass_at_k(n, n_right, k_), 1};
}

std::vector<double> PassAt::scores(std::span<const double> sums) const {
  return {100 * sums[0] / sums[1]};
}

std::string PassAt::signature(std::size_t) const {
  const Isolation& isolation = runner_->isolation();
  return fmt::format("estimate:unbiased|network:{}|files:{}", isolation.network ? "no" : "yes",
                     isolation.files ? "own" : "all");
}

}  // namespace outrider::eval
