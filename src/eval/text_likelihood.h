// How likely a model thinks a given text.
#ifndef OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_
#define OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_

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

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_TEXT_LIKELIHOOD_H_
