// How likely a model thinks a given text.
#ifndef OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_
#define OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "eval/metric.h"
#include "outrider/model.h"

namespace outrider::eval {

// -log prob of every token but the first, in nats, each given all before it in its window. A text
// longer than the model's context is read in windows of that length, each beginning half a context
// after the one before and scoring what that one did not: every scored token has at least half a
// context behind it, or all there is. `score(i, nll)` is called once for each i >= 1, in order.
// `cancelled` is asked between passes and ends the reading when true; false is then returned.
// Throws Error as forward() does.
bool score_tokens(const Model& model, std::span<const TokenId> ids,
                  const std::function<void(std::size_t, double)>& score,
                  const std::function<bool()>& cancelled = {});

// The text as the model's tokenizer cuts it, with the special tokens the model is used to. Where
// these include one for the beginning, every token of the text is scored; elsewhere the first is
// not. Throws Error if there is no token to score. Counts what was read if cancelled.
TextLikelihood likelihood_of(const Model& model, std::string_view text,
                             const std::function<bool()>& cancelled = {});

// Sums over the scored tokens of a text in windows.
struct WindowLikelihood {
  std::size_t n_windows = 0;
  std::int64_t n_tokens = 0;  // scored
  double nll = 0;             // nats
  double nll_squares = 0;     // of each token, for the error of the mean
  bool begins = false;        // a token for the beginning stood first in every window

  double nll_per_token() const { return nll / static_cast<double>(n_tokens); }
  // The standard error of nll_per_token, as if tokens were independent; NaN for one token.
  double standard_error() const;
};

// The likelihood as llama.cpp's llama-perplexity counts it. The ids are cut into windows of
// `window` tokens side by side; what is left at the end is not read. In each window the tokens
// behind its first window / 2 + 1 ones are scored, so that all have at least half a window before
// them. Where the tokenizer puts a token before every text, this token takes the place of the first
// of each window. `progress(n)` is called after every pass with the number of windows done, and
// ends the run where it throws. window >= 4. Throws UsageError for a window above the model's
// context, and Error for less than one window of ids and as forward() does.
WindowLikelihood score_windows(const Model& model, std::span<const TokenId> ids, int window,
                               const std::function<void(std::size_t)>& progress = {});

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_
