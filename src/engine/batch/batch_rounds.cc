// SPDX-License-Identifier: Apache-2.0
// The steps of a batch's round: admitting texts, planning, drafting, verifying and delivering.
#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "engine/batch/batch_state.h"
#include "model/prefill.h"

namespace outrider {

void Batch::State::take_submitted() {
  std::vector<Submitted> taken;
  {
    // Both lists under one lock: a cancelled request has been submitted before.
    const std::lock_guard lock(mutex);
    taken.swap(submitted);
    cancelling.swap(cancelled);
  }
  for (Submitted& one : taken) {
    waiting.push_back(std::make_unique<Running>(std::move(one), *model, matchers));
  }
}

void Batch::State::end_early() {
  const auto end = [this](Running& text) {
    if (text.generation.stream().finished) return;
    const bool named = std::find(cancelling.begin(), cancelling.end(), text.id) != cancelling.end();
    if (named || text.generation.cancelled()) {
      text.generation.end(FinishReason::cancelled);
    } else if (text.generation.overdue()) {
      text.generation.end(FinishReason::time);
    }
  };
  for (const auto& text : running) end(*text);
  for (const auto& text : waiting) end(*text);
  cancelling.clear();
}

// Admits the texts that have waited longest, up to the limit. Texts that have already ended are
// admitted only to be delivered.
void Batch::State::admit() {
  const auto n_max = static_cast<std::size_t>(options.max_running);
  for (auto next = waiting.begin(); next != waiting.end();) {
    if (!(*next)->generation.stream().finished && running.size() >= n_max) {
      ++next;
      continue;
    }
    running.push_back(std::move(*next));
    next = waiting.erase(next);
  }
}

void Batch::State::preempt(Running& text) {
  decoder.close(text.generation.stream());
  text.is_open = false;
  ++n_preempted;
  if (options.observer) report.add_preempted(text.id);
}

// Opens a text if the memory holds all of it beside the other texts' next growth. Drops kept texts
// for it, but preempts no running ones. Returns false if it has to wait.
bool Batch::State::open_if_it_fits(Running& text) {
  Stream& stream = text.generation.stream();
  // A text's first token does not wait for its drafter. A text that joins others starts its drafter
  // as they do; then the drafter runs the prompt in the target's pieces.
  const auto runs = [](const std::unique_ptr<Running>& one) {
    return !one->generation.stream().finished;
  };
  const bool is_alone = std::count_if(running.begin(), running.end(), runs) == 1;
  stream.defers_drafter = text.generation.speculation().adaptive && planner.is_measured() &&
                          (is_alone || !planner.reads_prompts(stream.drafting.drafter));
  const KeptText* earlier = kept.find(stream);
  decoder.open_target(stream, earlier);
  const auto holds = [&] {
    list_growths(Drafts::none);
    growths.push_back(stream.growth(static_cast<int>(stream.n_to_run()) + 1));
    const Drafter* const drafter = stream.drafting.drafter;
    if (earlier != nullptr && stream.has_other_drafter(*earlier) && drafter != nullptr &&
        drafter->uses_target_cache()) {
      // The drafter's own run of the reused tokens.
      growths.back().n_tokens += static_cast<int>(stream.n_run);
    }
    return model->language_model().fits(growths);
  };
  while (!holds()) {
    // The earlier text is first in the list, so it is dropped last.
    if (kept.size() > (earlier != nullptr ? 1U : 0U)) {
      kept.drop_oldest();
    } else if (!shares.empty()) {
      stream.sequence.reset();
      return false;
    } else {  // a text alone must fit; otherwise its pass reports the error
      if (earlier == nullptr) break;
      earlier = nullptr;
      stream.sequence.reset();
      kept.drop_oldest();
      decoder.open_target(stream, nullptr);
    }
  }
  decoder.begin_drafter(stream, earlier);
  text.is_open = true;
  return true;
}

// Every decoding text drafts. Texts with tokens to run share the prompt rows, first come, first
// served.
void Batch::State::plan_shares() {
  shares.clear();
  sharing.clear();
  const auto drafts = [](const std::unique_ptr<Running>& text) {
    return text->is_open && !text->generation.stream().finished &&
           text->generation.stream().n_to_run() == 0;
  };
  const bool any_drafts = std::any_of(running.begin(), running.end(), drafts);
  auto n_left = static_cast<std::size_t>(any_drafts ? options.prompt_rows : kPrefillRows);
  bool is_full = false;  // a text waits for memory, and no later one may overtake it
  for (const auto& text : running) {
    Stream& stream = text->generation.stream();
    if (stream.finished) continue;
    if (!text->is_open) {
      if (n_left == 0 || is_full) continue;
      try {
        is_full = !open_if_it_fits(*text);
        if (is_full) continue;
      } catch (...) {
        text->fail(std::current_exception());
        stream.sequence.reset();
        continue;
      }
    }
    const std::size_t n_to_run = std::min(stream.n_to_run(), n_left);
    if (stream.n_to_run() > 0 && n_to_run == 0) continue;
    n_left -= n_to_run;
    shares.push_back({.stream = &stream, .n_to_run = n_to_run});
    sharing.push_back(text.get());
  }
}

// Lists the most memory that the pass needs. A text that outgrows its sequence is run again.
void Batch::State::list_growths(Drafts drafts) {
  growths.clear();
  for (const StreamShare& share : shares) {
    const Stream& stream = *share.stream;
    auto n_tokens = static_cast<int>(std::max<std::size_t>(share.n_to_run, 1));
    if (drafts == Drafts::all && share.n_to_run == 0 && stream.drafting.drafter != nullptr) {
      n_tokens += stream.drafting.shape->n_nodes();
    }
    const auto n_all = static_cast<int>(stream.tokens.size());
    if (n_all > model->language_model().context_of(*stream.sequence)) n_tokens += n_all;
    growths.push_back(stream.growth(n_tokens));
  }
}

// Drops kept texts until the pass fits with its drafts. Then preempts texts, the last one first,
// until it fits without drafts. A text alone must fit; otherwise the pass reports the error.
void Batch::State::make_room() {
  const auto fits = [this](Drafts drafts) {
    list_growths(drafts);
    return model->language_model().fits(growths);
  };
  while (!fits(Drafts::all) && kept.drop_oldest()) {
  }
  while (!fits(Drafts::none) && sharing.size() > 1) {
    preempt(*sharing.back());
    sharing.pop_back();
    shares.pop_back();
  }
}

// Plans how deep the round's texts draft.
void Batch::State::plan_drafts() {
  planned.clear();
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Generation& generation = sharing[i]->generation;
    planned.push_back({.share = &shares[i],
                       .adaptive = generation.speculation().adaptive,
                       .drafting = &sharing[i]->drafting});
  }
  planner.plan(planned);
}

// A drafter replaced by update_drafters() is reported by its name: its spec now belongs to another
// one.
void Batch::State::tell_of_round(const RoundTimes& times) {
  const auto spec_of = [this](const Drafter& drafter) -> std::string_view {
    const auto at = std::find_if(
        drafters.begin(), drafters.end(),
        [&drafter](const NamedDrafter& named) { return named.drafter.get() == &drafter; });
    return at != drafters.end() ? std::string_view(at->spec) : drafter.name();
  };
  options.observer->on_round(report.finish(shares, decoder, times, spec_of));
}

void Batch::State::run_round() {
  const bool is_observed = options.observer != nullptr;
  if (is_observed) report.begin();
  plan_shares();
  make_room();
  if (shares.empty()) return;
  plan_drafts();
  for (std::size_t i = 0; i < shares.size() && is_observed; ++i) {
    report.add_text(shares[i], sharing[i]->generation.asked());
  }
  for (Running* const text : sharing) text->generation.begin_round();
  const auto on_commit = [this](Stream& stream, const Committed& committed) {
    const auto at = std::find_if(shares.begin(), shares.end(), [&stream](const StreamShare& share) {
      return share.stream == &stream;
    });
    Running& text = *sharing[static_cast<std::size_t>(at - shares.begin())];
    try {
      text.rethrow_of_drafter();
      return text.generation.commit(committed);
    } catch (...) {
      text.fail(std::current_exception());
      return true;
    }
  };
  try {
    const RoundTimes times = decoder.round(shares, on_commit);
    if (const double n_experts = decoder.experts_a_layer(); n_experts > 0) {
      n_experts_read += n_experts;
      ++n_expert_passes;
    }
    if (is_observed) tell_of_round(times);
    for (Running* const text : sharing) {
      text->generation.end_round(times);
      if (text->error) continue;
      try {
        text->rethrow_of_drafter();  // errors while it learnt
      } catch (...) {
        text->fail(std::current_exception());
      }
    }
    planner.learn(planned, times,
                  [this](const Drafter* drafter) { return decoder.draft_seconds(drafter); });
  } catch (...) {
    // An incomplete pass cannot be blamed on one text and leaves no state to continue from.
    for (Running* const text : sharing) {
      if (!text->error) text->fail(std::current_exception());
    }
  }
}

// False for a drafter that update_drafters() has replaced.
bool Batch::State::is_in_use(const std::shared_ptr<Drafter>& drafter) const {
  return drafter == nullptr ||
         std::any_of(drafters.begin(), drafters.end(),
                     [&drafter](const NamedDrafter& named) { return named.drafter == drafter; });
}

void Batch::State::publish_load() {
  const std::lock_guard lock(mutex);
  load = {.n_waiting = submitted.size() + waiting.size(),
          .n_running = running.size(),
          .n_kept = kept.size(),
          .n_preempted = n_preempted,
          .n_expert_passes = n_expert_passes,
          .n_experts_read = n_experts_read};
}

void Batch::State::deliver_finished() {
  // on_end may submit, so the lists are consistent before it is called.
  std::vector<std::unique_ptr<Running>> finished;
  for (auto& text : running) {
    if (text->generation.stream().finished) finished.push_back(std::move(text));
  }
  std::erase(running, nullptr);
  for (const auto& text : finished) {
    Stream& stream = text->generation.stream();
    planner.ended(static_cast<std::int64_t>(stream.tokens.size()) - stream.n_prompt);
    if (text->error == nullptr && text->is_open && options.max_kept > 0 &&
        is_in_use(text->generation.drafter())) {
      kept.add({.id = stream.id,
                .drafter = text->generation.drafter(),
                .tokens = stream.tokens,
                .sequence = std::move(stream.sequence),
                .encoder_tokens = stream.encoder_tokens});
    } else if (text->is_open) {
      decoder.end(stream);
      stream.sequence.reset();
    }
  }
  publish_load();
  std::exception_ptr thrown;
  for (const auto& text : finished) {
    GenerateResult result;
    std::exception_ptr error = text->error;
    try {
      result = text->generation.finish();
    } catch (...) {  // errors of the verdict log
      if (!error) error = std::current_exception();
    }
    if (options.observer) {
      options.observer->on_end({.id = text->id,
                                .asked = text->generation.asked(),
                                .ended = std::chrono::steady_clock::now(),
                                .failed = error != nullptr});
    }
    try {
      if (text->on_end) text->on_end(std::move(result), error);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace outrider
