// SPDX-License-Identifier: Apache-2.0
// The state of a batch: its requests, the running texts, and the steps of a round.
#ifndef OUTRIDER_ENGINE_BATCH_BATCH_STATE_H_
#define OUTRIDER_ENGINE_BATCH_BATCH_STATE_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/batch/generation.h"
#include "engine/batch/round_report.h"
#include "engine/batch/text_cache.h"
#include "engine/drafting/draft_planner.h"
#include "engine/speculation.h"
#include "outrider/batch.h"
#include "speculate/decoder.h"

namespace outrider {

struct Batch::State {
  struct Submitted {
    std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now();
    RequestId id = 0;
    GenerateRequest request;
    std::shared_ptr<const Speculation> speculation;
    Batch::OnEnd on_end;
  };

  // A request whose text has been made.
  struct Running {
    Running(Submitted submitted, const Model& model, GrammarMatchers& matchers)
        : id(submitted.id),
          generation(submitted.id, std::move(submitted.request), model,
                     std::move(submitted.speculation), matchers, submitted.when),
          on_end(std::move(submitted.on_end)),
          drafting(generation.speculation().stop.get()) {
      if (generation.speculation().adaptive) generation.stream().drafting.stop = drafting.stop();
    }

    void fail(std::exception_ptr what) {
      error = std::move(what);
      generation.fail();
    }

    // Throws the text's error in a drafter of the program, if any.
    void rethrow_of_drafter() const {
      const std::shared_ptr<Drafter>& drafter = generation.drafter();
      const std::exception_ptr what = drafter != nullptr ? drafter->failure(id) : nullptr;
      if (what) std::rethrow_exception(what);
    }

    RequestId id;
    Generation generation;
    Batch::OnEnd on_end;
    DraftingText drafting;
    bool is_open = false;      // its stream has a sequence
    std::exception_ptr error;  // the error that ends it
  };

  // A drafter and the spec by which requests name it.
  struct NamedDrafter {
    std::string spec;
    std::shared_ptr<Drafter> drafter;
    std::shared_ptr<const TreeShape> shape;  // of drafts if the user names no tree
    std::optional<DrafterUpdates> updates;
    std::shared_ptr<OwnDrafter> own = nullptr;  // the program's object, if any
  };

  // A speculation and the options that ask for it.
  struct Known {
    SpeculationOptions options;
    std::shared_ptr<const Speculation> speculation;
  };

  State(std::shared_ptr<const Model> target, const BatchOptions& batch_options)
      : model(std::move(target)), decoder(model->language_model()), options(batch_options) {
    kept.limit(static_cast<std::size_t>(options.max_kept));
  }

  const NamedDrafter* find_drafter(const std::string& spec) const;
  void for_planned_drafters(
      const std::function<void(const std::string& spec, Drafter& drafter)>& visit) const;
  std::shared_ptr<const Speculation> speculation_of(const SpeculationOptions& asked);
  void take_submitted();
  void end_early();
  void admit();
  void preempt(Running& text);
  bool open_if_it_fits(Running& text);
  void plan_shares();
  enum class Drafts { none, all };
  void list_growths(Drafts drafts);
  void make_room();
  void plan_drafts();
  void run_round();
  void tell_of_round(const RoundTimes& times);
  bool is_in_use(const std::shared_ptr<Drafter>& drafter) const;
  void deliver_finished();
  void publish_load();

  std::shared_ptr<const Model> model;
  Decoder decoder;
  BatchOptions options;

  // Guards the members from here to `load`.
  mutable std::mutex mutex;
  std::vector<NamedDrafter> drafters;
  std::deque<Known> known;  // the last ones asked for
  std::vector<Submitted> submitted;
  std::vector<RequestId> cancelled;
  RequestId next_id = 0;
  BatchLoad load;

  std::vector<RequestId> cancelling;  // taken from `cancelled`

  // Used by the stepping thread only.
  GrammarMatchers matchers;
  std::deque<std::unique_ptr<Running>> waiting;   // in order of submission
  std::vector<std::unique_ptr<Running>> running;  // in order of admission
  TextCache kept;
  std::int64_t n_preempted = 0;
  std::int64_t n_expert_passes = 0;
  double n_experts_read = 0;
  DraftPlanner planner;
  std::vector<StreamShare> shares;  // of the round
  std::vector<Running*> sharing;    // for each of shares
  std::vector<SequenceGrowth> growths;
  std::vector<DraftPlanner::Text> planned;  // those of shares
  RoundReport report;                       // for options.observer
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_BATCH_STATE_H_
