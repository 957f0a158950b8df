// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/text_likelihood.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "model/language_model.h"
#include "model/require_decoder.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

// Rows of logits held at once: 128 MiB with the largest vocabularies (256 thousand).
constexpr std::size_t kRowsPerPass = 128;

double nll_of(std::span<const float> logits, TokenId id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - largest);
  return std::log(sum) + largest - double{logits[static_cast<std::size_t>(id)]};
}

}  // namespace

bool score_tokens(const Model& model, std::span<const TokenId> ids,
                  const std::function<void(std::size_t, double)>& score,
                  const std::function<bool()>& cancelled) {
  LanguageModel& language_model = model.language_model();
  const auto context = static_cast<std::size_t>(model.summary().context_length);
  const std::size_t step = std::max<std::size_t>(1, context / 2);
  ForwardOutput output;
  std::vector<int> path;
  std::size_t next = 1;  // the first token not scored yet
  for (std::size_t begin = 0; next < ids.size(); begin += step) {
    const std::size_t end = std::min(ids.size(), begin + context);
    const auto sequence = language_model.open({.n_tokens = static_cast<int>(end - begin)});
    // A window's last token predicts nothing in it.
    for (std::size_t at = begin; at + 1 < end;) {
      if (cancelled && cancelled()) return false;
      const std::size_t n = std::min(kRowsPerPass, end - 1 - at);
      const TokenBlock block{
          .sequence = sequence.get(), .tokens = ids.subspan(at, n), .parents = {}};
      // Tokens scored by an earlier window are only read.
      const bool scores = at + n >= next;
      const ForwardRequest request{
          .logits = {.kind = scores ? RowSet::Kind::all : RowSet::Kind::none, .rows = {}},
          .feature_layers = {}};
      language_model.forward({&block, 1}, request, output);
      path.resize(n);
      for (std::size_t i = 0; i < n; ++i) path[i] = static_cast<int>(i);
      sequence->keep(path);
      for (std::size_t row = 0; scores && row < n; ++row) {
        if (at + row + 1 < next) continue;
        score(next, nll_of(output.logits_row(static_cast<int>(row)), ids[next]));
        ++next;
      }
      at += n;
    }
  }
  return true;
}

TextLikelihood likelihood_of(const Model& model, std::string_view text,
                             const std::function<bool()>& cancelled) {
  const std::vector<TokenId> ids = model.tokenizer().encode(text, true);
  if (ids.size() < 2) throw Error("score text", "text", "two tokens at least", "fewer");
  TextLikelihood likelihood{
      .nll = 0, .n_tokens = 0, .n_bytes = static_cast<std::int64_t>(text.size())};
  score_tokens(
      model, ids,
      [&](std::size_t, double nll) {
        likelihood.nll += nll;
        ++likelihood.n_tokens;
      },
      cancelled);
  if (!std::isfinite(likelihood.nll)) {
    throw Error("score text", "logits", "numbers", "NaN (the model's weights may be broken)");
  }
  return likelihood;
}

double WindowLikelihood::standard_error() const {
  const auto n = static_cast<double>(n_tokens);
  if (n_tokens < 2) return std::numeric_limits<double>::quiet_NaN();
  const double mean = nll / n;
  return std::sqrt(std::max(0.0, nll_squares / n - mean * mean) / (n - 1));
}

WindowLikelihood score_windows(const Model& model, std::span<const TokenId> ids, int window,
                               const std::function<void(std::size_t)>& progress) {
  require_decoder(model.language_model().config(), "score text");
  const int context = model.summary().context_length;
  if (window < 4 || window > context) {
    throw UsageError("score text", "window", fmt::format("4 to the model's context, {}", context),
                     fmt::format("{}", window));
  }
  const auto length = static_cast<std::size_t>(window);
  if (ids.size() < length) {
    throw Error("score text", "text", fmt::format("{} tokens, a window, at least", window),
                fmt::format("{}", ids.size()));
  }
  // Not bos_token(): some files name none and still prepend one to every text.
  const std::vector<TokenId> of_text = model.tokenizer().encode("a", true);
  const std::vector<TokenId> of_text_alone = model.tokenizer().encode("a", false);
  WindowLikelihood sums;
  sums.begins = !of_text_alone.empty() && of_text.front() != of_text_alone.front();
  // A row of logits predicts the next token: the first row that counts, and the total number of
  // rows.
  const std::size_t first = length / 2;
  const std::size_t n_rows = length - 1;

  LanguageModel& language_model = model.language_model();
  ForwardOutput output;
  std::vector<TokenId> tokens;
  std::vector<int> path;
  for (std::size_t begin = 0; begin + length <= ids.size(); begin += length) {
    const auto of_window = ids.subspan(begin, length);
    tokens.assign(of_window.begin(), of_window.end());
    if (sums.begins) tokens.front() = of_text.front();
    const auto sequence = language_model.open({.n_tokens = static_cast<int>(length)});
    for (std::size_t at = 0; at < n_rows;) {
      // A pass consists of rows that count, or of rows that do not.
      const bool scores = at >= first;
      const std::size_t n = std::min(kRowsPerPass, (scores ? n_rows : first) - at);
      const TokenBlock block{.sequence = sequence.get(), .tokens = {&tokens[at], n}, .parents = {}};
      const ForwardRequest request{
          .logits = {.kind = scores ? RowSet::Kind::all : RowSet::Kind::none, .rows = {}},
          .feature_layers = {}};
      language_model.forward({&block, 1}, request, output);
      path.resize(n);
      for (std::size_t i = 0; i < n; ++i) path[i] = static_cast<int>(i);
      sequence->keep(path);
      for (std::size_t row = 0; scores && row < n; ++row) {
        const double nll = nll_of(output.logits_row(static_cast<int>(row)), tokens[at + row + 1]);
        sums.nll += nll;
        sums.nll_squares += nll * nll;
        ++sums.n_tokens;
      }
      at += n;
      sums.n_windows += at == n_rows ? 1 : 0;
      if (progress) progress(sums.n_windows);
    }
  }
  if (!std::isfinite(sums.nll)) {
    throw Error("score text", "logits", "numbers", "NaN (the model's weights may be broken)");
  }
  return sums;
}

}  // namespace outrider::eval
