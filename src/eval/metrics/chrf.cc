// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/chrf.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/metrics/ngrams.h"
#include "eval/metrics/words.h"

namespace outrider::eval {
namespace {

constexpr int kMaxOrder = 6;
constexpr double kBetaSquared = 4;

std::u32string without_space(std::string_view text) {
  std::u32string result = characters(text);
  result.erase(std::remove_if(result.begin(), result.end(), is_space), result.end());
  return result;
}

double score_of(std::span<const double> counts) {
  double precision = 0;
  double recall = 0;
  int n_orders = 0;  // orders for which text and reference have n-grams
  for (std::size_t n = 0; n < kMaxOrder; ++n) {
    const double in_text = counts[3 * n];
    const double in_reference = counts[3 * n + 1];
    if (in_text == 0 || in_reference == 0) continue;
    precision += counts[3 * n + 2] / in_text;
    recall += counts[3 * n + 2] / in_reference;
    ++n_orders;
  }
  if (precision + recall == 0) return 0;
  precision /= n_orders;
  recall /= n_orders;
  return 100 * (1 + kBetaSquared) * precision * recall / (kBetaSquared * precision + recall);
}

}  // namespace

std::vector<double> Chrf::count(const Judged& judged) const {
  const std::u32string text = without_space(judged.texts.front());
  std::vector<double> best;
  for (const std::string& given : judged.references) {
    const std::u32string reference = without_space(given);
    std::vector<double> counts;
    for (int n = 1; n <= kMaxOrder; ++n) {
      const auto n_of = [n](const std::u32string& characters) {
        return std::max(0, static_cast<int>(characters.size()) - n + 1);
      };
      // If the reference is too short for n-grams of this order, the text's do not count against
      // it.
      counts.push_back(n_of(reference) == 0 ? 0 : n_of(text));
      counts.push_back(n_of(reference));
      counts.push_back(n_common(ngrams(text, n), ngrams(reference, n)));
    }
    if (best.empty() || score_of(counts) > score_of(best)) best = std::move(counts);
  }
  return best;
}

std::vector<double> Chrf::scores(std::span<const double> sums) const { return {score_of(sums)}; }

std::string Chrf::signature(std::size_t n_references) const {
  return fmt::format("nrefs:{}|case:mixed|eff:yes|nc:6|nw:0|space:no",
                     n_references == 0 ? "var" : fmt::format("{}", n_references));
}

}  // namespace outrider::eval
