// SPDX-License-Identifier: Apache-2.0
// outrider eval --perplexity: a text's perplexity in windows, computed as in llama-perplexity.
#ifndef OUTRIDER_APPS_EVALUATION_EVAL_PERPLEXITY_H_
#define OUTRIDER_APPS_EVALUATION_EVAL_PERPLEXITY_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/flags/model_flags.h"

namespace outrider::cli {

struct PerplexityFlags {
  bool chosen = false;
  int tokens = 0;  // the first tokens of the text; 0: all
};

// --perplexity, and the flags that need it.
void add_perplexity_flags(CLI::App& app, PerplexityFlags& flags);

// `texts` and `window` are values of flags that --teacher-forced also has; a window of 0 is the
// default. Exactly one text is accepted.
int run_perplexity(const ModelFlags& model_flags, const PerplexityFlags& flags,
                   const std::vector<std::string>& texts, int window, bool json);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_EVALUATION_EVAL_PERPLEXITY_H_
