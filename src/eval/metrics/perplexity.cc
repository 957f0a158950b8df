// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/perplexity.h"

#include <cmath>
#include <limits>

namespace outrider::eval {

std::vector<double> Perplexity::count(const Judged& judged) const {
  const TextLikelihood& likelihood = *judged.likelihood;
  return {likelihood.nll, static_cast<double>(likelihood.n_tokens),
          static_cast<double>(likelihood.n_bytes)};
}

std::vector<double> Perplexity::scores(std::span<const double> sums) const {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  if (sums[1] == 0 || sums[2] == 0) return {kNothing, kNothing, kNothing};
  const double per_token = sums[0] / sums[1];
  return {std::exp(per_token), per_token, sums[0] / std::log(2.0) / sums[2]};
}

std::string Perplexity::signature(std::size_t) const { return "window:context|overlap:half"; }

}  // namespace outrider::eval
