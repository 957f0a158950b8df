// SPDX-License-Identifier: Apache-2.0
// From measured speed-ups to a recommendation, by pure functions.
#include <algorithm>
#include <cmath>
#include <vector>

#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

bool is_known(const Estimate& estimate) {
  return std::isfinite(estimate.value) && std::isfinite(estimate.low) &&
         std::isfinite(estimate.high);
}

bool is_enough(const TunedMethod& method) {
  return method.n_prompts >= kFewestPrompts && is_known(method.over_plain);
}

bool is_faster(const TunedMethod& method) { return is_enough(method) && method.over_plain.low > 1; }

bool is_not_faster(const TunedMethod& method) {
  return is_enough(method) && method.over_plain.high <= 1;
}

bool is_faster_than_auto(const TunedMethod& method) {
  return is_known(method.over_auto) && method.over_auto.low > 1;
}

// The largest by a speed-up; an unknown one is below all others.
std::size_t largest(std::span<const TunedMethod> methods, std::span<const std::size_t> among,
                    Estimate TunedMethod::*speedup) {
  const auto value = [&](std::size_t method) {
    const double known = (methods[method].*speedup).value;
    return std::isfinite(known) ? known : 0;
  };
  return *std::max_element(among.begin(), among.end(),
                           [&](std::size_t a, std::size_t b) { return value(a) < value(b); });
}

int prompts_needed(const TunedMethod& method) {
  if (!is_known(method.over_plain)) return kFewestPrompts;
  const Estimate& speedup = method.over_plain;
  const double gain = std::abs(speedup.value - 1);
  const double half =
      speedup.value > 1 ? speedup.value - speedup.low : speedup.high - speedup.value;
  const double n = method.n_prompts * (half * half) / (gain * gain);
  constexpr double kMany = 1e6;  // more prompts than anyone has; the speed-up may be 1
  if (!(n < kMany)) return 0;
  // One more than moves the interval's end to 1.
  const int needed = std::max(static_cast<int>(n) + 1, kFewestPrompts);
  // A shape that is faster than plain decoding but perhaps no better than planned drafts.
  return needed > method.n_prompts ? needed : 0;
}

}  // namespace

Advice recommend(std::span<const TunedMethod> methods, double temperature) {
  Advice advice{.temperature = temperature, .method = methods.size()};
  std::vector<std::size_t> here;    // the candidates
  std::vector<std::size_t> faster;  // those with planned depths
  for (std::size_t index = 0; index < methods.size(); ++index) {
    const TunedMethod& method = methods[index];
    if (method.temperature != temperature || method.differs) continue;
    here.push_back(index);
    if (method.tree.empty() && is_faster(method)) faster.push_back(index);
  }
  if (here.empty()) return advice;
  // Fixed shapes that are better than the choice without them.
  std::vector<std::size_t> better;
  for (const std::size_t index : here) {
    const TunedMethod& method = methods[index];
    if (method.tree.empty() || !is_faster(method) || !is_faster_than_auto(method)) continue;
    const bool is_above =
        faster.empty() ||
        methods[largest(methods, faster, &TunedMethod::over_plain)].drafter == method.drafter;
    if (is_above) better.push_back(index);
  }
  if (!better.empty() || !faster.empty()) {
    advice.finding = Finding::pays;
    advice.method = better.empty() ? largest(methods, faster, &TunedMethod::over_plain)
                                   : largest(methods, better, &TunedMethod::over_auto);
    return advice;
  }
  advice.method = largest(methods, here, &TunedMethod::over_plain);
  const bool none_pays = std::all_of(
      here.begin(), here.end(), [&](std::size_t index) { return is_not_faster(methods[index]); });
  advice.finding = none_pays ? Finding::costs : Finding::not_certain;
  if (!none_pays) advice.prompts_needed = prompts_needed(methods[advice.method]);
  return advice;
}

namespace {

// Quotes a word for a shell.
std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:,=+@";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) {
    if (c == '\'') {
      word += "'\\''";
    } else {
      word += c;
    }
  }
  return word + "'";
}

}  // namespace

std::string flags_of(const TunedMethod& method) {
  const std::string flags = "--drafter " + quoted(method.drafter);
  return method.tree.empty() ? flags : flags + " --tree " + quoted(method.tree);
}

}  // namespace outrider
