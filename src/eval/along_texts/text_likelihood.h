// SPDX-License-Identifier: Apache-2.0
// A model's likelihood of a given text.
#ifndef OUTRIDER_EVAL_ALONG_TEXTS_TEXT_LIKELIHOOD_H_
#define OUTRIDER_EVAL_ALONG_TEXTS_TEXT_LIKELIHOOD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "eval/metrics/metric.h"
#include "outrider/model.h"

namespace outrider::eval {

// -log prob of every token but the first, in nats, each given all tokens before it in its window. A
// text longer than the model's context is processed in windows of that length. Each begins half a
// context after the one before and scores the tokens that that one did not. So every scored token
// has at least half a context before it, or all there is. `score(i, nll)` is called once for each i
// >= 1, in order. `cancelled` is called between passes; if it returns true, processing ends and the
// function returns false. Throws Error as forward() does.
bool score_tokens(const Model& model, std::span<const TokenId> ids,
                  const std::function<void(std::size_t, double)>& score,
                  const std::function<bool()>& cancelled = {});

// The likelihood of a text in the model's tokens, with its usual special tokens. If these include a
// beginning token, every token of the text is scored; otherwise all but the first. Throws Error if
// there is no token to score. If cancelled, counts the tokens processed so far.
TextLikelihood likelihood_of(const Model& model, std::string_view text,
                             const std::function<bool()>& cancelled = {});

// Sums over the scored tokens of a text in windows.
struct WindowLikelihood {
  std::size_t n_windows = 0;
  std::int64_t n_tokens = 0;  // scored
  double nll = 0;             // nats
  double nll_squares = 0;     // of each token, for the standard error of the mean
  bool begins = false;        // every window began with a beginning token

  double nll_per_token() const { return nll / static_cast<double>(n_tokens); }
  // The standard error of nll_per_token, as if tokens were independent; NaN for one token.
  double standard_error() const;
};

// The likelihood as computed by llama.cpp's llama-perplexity. The ids are cut into adjacent windows
// of `window` tokens; the remainder is ignored. In each window the tokens after the first window /
// 2 + 1 are scored, so that all have at least half a window before them. If the tokenizer puts a
// token before every text, this token replaces the first of each window. `progress(n)` is called
// after every pass with the number of windows done; an exception from it ends the run. window >= 4.
// Throws UsageError for a window above the model's context, and Error for less than one window of
// ids and as forward() does.
WindowLikelihood score_windows(const Model& model, std::span<const TokenId> ids, int window,
                               const std::function<void(std::size_t)>& progress = {});

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_ALONG_TEXTS_TEXT_LIKELIHOOD_H_
