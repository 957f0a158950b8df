// SPDX-License-Identifier: Apache-2.0
#include "eval/along_texts/forced_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "engine/speculation.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider::eval {
namespace {

// The tokens that a model reads at a time.
int window_of(const ForcedRequest& request, const LanguageModel& target,
              const LanguageModel& drafter) {
  const int context = target.config().context_length;
  if (request.window == 0) return std::min(context, drafter.config().context_length);
  if (request.window < 2 || request.window > context) {
    throw UsageError("measure rules", "window",
                     fmt::format("from 2 tokens to the target's context of {}", context),
                     fmt::format("{}", request.window));
  }
  return request.window;
}

}  // namespace

ForcedMeasurement run_teacher_forced(const Model& target, const SpeculationOptions& speculation,
                                     const ForcedRequest& request,
                                     const std::function<void(const ForcedProgress&)>& progress) {
  const auto drafter = load_drafter_model(target, speculation);
  ForcedOptions options = request.options;
  if (options.n_threads == 0) options.n_threads = default_threads();
  TeacherForced measured(target.language_model(), *drafter, options);

  ForcedMeasurement result;
  ForcedRun& run = result.run;
  run.drafter = speculation.drafter;
  run.files = request.sources;
  run.window = window_of(request, target.language_model(), *drafter);
  run.lengths = options.lengths;
  ForcedProgress done{.n_all_texts = request.passages.size()};
  const auto tell = [&] {
    if (progress) progress(done);
  };
  const auto windows_of_passage = [&](const Passage& passage) {
    return target.summary().n_encoder_layers == 0
               ? windows_of(passage, target.tokenizer(), run.window)
               : windows_behind_encoder(passage, target.tokenizer(), target.summary().start_token);
  };
  for (const Passage& passage : request.passages) {
    const std::vector<Window> windows = windows_of_passage(passage);
    if (!windows.empty()) {
      done.n_all_tokens = 0;
      for (const Window& window : windows) {
        done.n_all_tokens += static_cast<std::int64_t>(window.tokens.size()) - window.n_given;
      }
      measured.add_text(windows, [&](std::int64_t n_tokens) {
        done.n_tokens = n_tokens;
        tell();
      });
      ++run.n_texts;
      run.n_tokens += done.n_all_tokens;
    }
    ++done.n_texts;
    done.n_tokens = done.n_all_tokens = 0;
    tell();
  }
  if (run.n_texts == 0) {
    throw Error("measure rules", "texts", "one of at least two tokens", "none");
  }
  result.rows = forced_rows(measured);
  return result;
}

}  // namespace outrider::eval
