// SPDX-License-Identifier: Apache-2.0
#include "sampling/log_probs.h"

#include <cmath>
#include <limits>

#include "base/elementary.h"
#include "sampling/transform.h"

namespace outrider {

void log_probs(LogitRow row, TokenId id, int n_top, double& of, std::vector<TokenLogProb>& top) {
  thread_local std::vector<TokenId> likeliest;
  likeliest_tokens(row, n_top > 1 ? n_top : 1, likeliest);
  const double largest = row.at(likeliest.front());
  const auto finite = [](double logit) { return std::isfinite(logit); };
  // A row of -infinity alone, or with one infinity, gives one token all probability.
  double log_sum = 0;
  if (finite(largest)) {
    double sum = 0;
    for (const float logit : row.values()) {
      if (finite(logit)) sum += portable_exp(static_cast<double>(logit) - largest);
    }
    log_sum = portable_log(sum);
  }
  const auto at = [&](TokenId token) {
    const double logit = row.at(token);
    if (!finite(largest)) {
      return token == likeliest.front() ? 0.0 : -std::numeric_limits<double>::infinity();
    }
    return finite(logit) ? logit - largest - log_sum : -std::numeric_limits<double>::infinity();
  };
  of = at(id);
  top.clear();
  if (n_top == 0) return;
  top.reserve(likeliest.size());
  for (const TokenId token : likeliest) top.push_back({.id = token, .log_prob = at(token)});
}

}  // namespace outrider
