// SPDX-License-Identifier: Apache-2.0
#include "apps/evaluation/eval_perplexity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/evaluation/item_progress.h"
#include "eval/along_texts/text_likelihood.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::cli {

void add_perplexity_flags(CLI::App& app, PerplexityFlags& flags) {
  constexpr const char* kGroup = "Perplexity of a text";
  app.add_flag("--perplexity", flags.chosen,
               "Perplexity of --text, as llama-perplexity measures it. The second half of each "
               "window of --window tokens is scored; windows stand side by side")
      ->group(kGroup);
  add_integer(app, "--tokens", flags.tokens, 4, "The first N tokens of the text (default: all)")
      ->group(kGroup);
}

int run_perplexity(const ModelFlags& model_flags, const PerplexityFlags& flags,
                   const std::vector<std::string>& texts, int window, bool json) {
  // llama-perplexity's default window, for which published figures hold.
  constexpr int kDefaultWindow = 512;
  if (texts.size() != 1) {
    throw UsageError("read flags", "--text", "one file", fmt::format("{}", texts.size()));
  }
  const std::string text = read_text(texts.front());
  Interrupt interrupt;
  const std::shared_ptr<const Model> model = load_model(model_flags, interrupt);
  const int length =
      window > 0 ? window : std::min(kDefaultWindow, model->summary().context_length);
  std::vector<TokenId> ids = model->tokenizer().encode(text, true);
  if (flags.tokens > 0) ids.resize(std::min(ids.size(), static_cast<std::size_t>(flags.tokens)));

  eval::WindowLikelihood sums;
  {
    ItemProgress progress(static_cast<int>(ids.size()) / length, 0);
    std::size_t n_shown = 0;
    sums = eval::score_windows(*model, ids, length, [&](std::size_t n_done) {
      interrupt.throw_if_raised();
      for (; n_shown < n_done; ++n_shown) progress.step();
    });
  }
  const double perplexity = std::exp(sums.nll_per_token());
  // The error of a function of the mean is its derivative times the mean's error.
  const double error = perplexity * sums.standard_error();
  Output output;
  if (json) {
    nlohmann::ordered_json result;
    result["model"] = model_flags.model;
    result["text"] = texts.front();
    result["window"] = length;
    result["windows"] = sums.n_windows;
    result["begin_token"] = sums.begins;
    result["tokens"] = sums.n_tokens;
    result["perplexity"] = perplexity;
    result["standard_error"] = error;
    result["nll_per_token"] = sums.nll_per_token();
    output.write(eval::json_text(result, 1) + "\n");
  } else {
    output.write(
        fmt::format("perplexity  {:.4f} +/- {:.4f}\n{} tokens in {} windows of {}, {} "
                    "a token for the beginning\n",
                    perplexity, error, sums.n_tokens, sums.n_windows, length,
                    sums.begins ? "each with its first token replaced by" : "without"));
  }
  output.check();
  return 0;
}

}  // namespace outrider::cli
