// SPDX-License-Identifier: Apache-2.0
#include "outrider/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "engine/batch/batch_state.h"
#include "engine/batch/saved_text.h"
#include "engine/drafting/drafting_profile.h"
#include "model/require_decoder.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// How many speculations are remembered. There are few unless each request names settings of its
// own.
constexpr std::size_t kMaxKnown = 64;

bool same_specs(const SpeculationOptions& a, const SpeculationOptions& b) {
  return a.drafter == b.drafter && a.rule == b.rule && a.tree == b.tree && a.verify == b.verify &&
         a.adaptive == b.adaptive;
}

const BatchOptions& checked(const BatchOptions& options) {
  const auto require = [](const char* name, int value, int least) {
    if (value >= least) return;
    throw UsageError("make batch", name, fmt::format("{} or more", least),
                     fmt::format("{}", value));
  };
  require("max_running", options.max_running, 1);
  require("prompt_rows", options.prompt_rows, 1);
  require("max_kept", options.max_kept, 0);
  return options;
}

DraftingProfile read_profile(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  return read_drafting_profile(
      {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()}, file.string());
}

}  // namespace

Batch::Batch(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
             const ModelOptions& drafter_options, const BatchOptions& options)
    : state_(std::make_unique<State>(std::move(model), checked(options))) {
  for (const std::string& spec : drafters) {
    if (spec == "none" || state_->find_drafter(spec) != nullptr) continue;
    // A rule that works with any drafter; the drafters that requests name are checked with it.
    Speculation made =
        make_speculation(*state_->model, {.drafter = spec, .drafter_options = drafter_options});
    state_->drafters.push_back(
        {spec, std::move(made.drafter), std::move(made.shape), std::move(made.updates)});
  }
}

void Batch::add_drafter(const std::string& spec, std::shared_ptr<OwnDrafter> drafter) {
  constexpr const char* kOperation = "add drafter";
  if (drafter == nullptr) throw UsageError(kOperation, spec, "a drafter", "none");
  Speculation made = make_speculation(*state_->model, {.drafter = spec, .own_drafter = drafter});
  const std::lock_guard lock(state_->mutex);
  if (state_->find_drafter(spec) != nullptr) {
    throw UsageError(kOperation, spec, "a spec that no drafter of the batch has",
                     "one that is taken");
  }
  state_->drafters.push_back({.spec = spec,
                              .drafter = std::move(made.drafter),
                              .shape = std::move(made.shape),
                              .updates = std::nullopt,
                              .own = std::move(drafter)});
}

// The drafters end the texts that are cut off here when the batch itself ends.
Batch::~Batch() = default;

RequestId Batch::submit(GenerateRequest request, const SpeculationOptions& speculation,
                        OnEnd on_end) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  State::Submitted submitted{.id = state.next_id,
                             .request = std::move(request),
                             .speculation = state.speculation_of(speculation),
                             .on_end = std::move(on_end)};
  part_encoder_prompt(submitted.request, *state.model);
  check_request(submitted.request, *state.model, *submitted.speculation);
  state.submitted.push_back(std::move(submitted));
  ++state.load.n_waiting;
  return state.next_id++;
}

void Batch::cancel(RequestId id) {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled.push_back(id);
}

BatchLoad Batch::load() const {
  const std::lock_guard lock(state_->mutex);
  return state_->load;
}

const BatchOptions& Batch::options() const { return state_->options; }

void Batch::set_options(const BatchOptions& options) {
  state_->options = checked(options);
  state_->kept.limit(static_cast<std::size_t>(options.max_kept));
}

RuleScope Batch::rule_scope(const SpeculationOptions& speculation) const {
  const std::lock_guard lock(state_->mutex);
  return state_->speculation_of(speculation)->scope;
}

bool Batch::update_drafters() {
  bool updated = false;
  for (State::NamedDrafter& named : state_->drafters) {
    if (!named.updates) continue;
    std::shared_ptr<Drafter> drafter = named.updates->take(*state_->model);
    if (drafter == nullptr) continue;
    state_->kept.drop_those_of(*named.drafter);
    const std::lock_guard lock(state_->mutex);
    named.drafter = std::move(drafter);
    state_->known.clear();
    updated = true;
  }
  return updated;
}

SavedText Batch::save_text(RequestId id, const std::filesystem::path& path) {
  const KeptText* const text = state_->kept.find(id);
  if (text == nullptr) {
    throw Error("save text", "text", "one that has ended and is kept",
                "none: it runs, or gave way to others");
  }
  const std::int64_t n_bytes =
      outrider::save_text(state_->model->language_model(), *text->sequence, text->tokens, path);
  return {.id = id, .n_tokens = text->sequence->n_kept(), .n_bytes = n_bytes};
}

SavedText Batch::load_text(const std::filesystem::path& path) {
  State& state = *state_;
  if (state.options.max_kept == 0) {
    throw Error("load text", "kept texts", "room for one or more (max_kept)", "0");
  }
  LanguageModel& target = state.model->language_model();
  require_decoder(target.config(), "load text");
  const auto make_room = [&](int n_tokens) {
    const auto sequence = target.open({.n_tokens = n_tokens});
    const SequenceGrowth growth{.sequence = sequence.get(), .n_tokens = n_tokens};
    while (!target.fits({&growth, 1}) && state.kept.drop_oldest()) {
    }
  };
  LoadedText text = outrider::load_text(target, path, make_room);
  SavedText loaded{.n_tokens = static_cast<std::int64_t>(text.tokens.size()),
                   .n_bytes = text.n_bytes};
  {
    const std::lock_guard lock(state.mutex);
    loaded.id = state.next_id++;
  }
  state.kept.add({.id = loaded.id,
                  .drafter = nullptr,
                  .tokens = std::move(text.tokens),
                  .sequence = std::move(text.sequence)});
  state.publish_load();
  return loaded;
}

std::int64_t Batch::drop_text(RequestId id) {
  const KeptText* const text = state_->kept.find(id);
  if (text == nullptr) return 0;
  const auto n_tokens = static_cast<std::int64_t>(text->tokens.size());
  state_->kept.drop(id);
  state_->publish_load();
  return n_tokens;
}

bool Batch::make_room(const std::function<bool()>& fits) {
  State& state = *state_;
  for (std::size_t left = state.running.size(); !fits();) {
    if (state.kept.drop_oldest()) continue;
    while (left > 0 && !state.running[left - 1]->is_open) --left;
    if (left == 0) return false;
    state.preempt(*state.running[left - 1]);
  }
  return true;
}

void Batch::measure_passes() { state_->planner.measure(state_->model->language_model()); }

bool Batch::has_measured_passes() const { return state_->planner.is_measured(); }

void Batch::save_drafting_profile(const std::filesystem::path& file) const {
  DraftingProfile profile{.passes = state_->planner.passes(), .drafters = {}};
  state_->for_planned_drafters([&](const std::string& spec, Drafter& drafter) {
    const KnownOfDrafter* const known = state_->planner.known(&drafter);
    const bool is_there = std::any_of(profile.drafters.begin(), profile.drafters.end(),
                                      [&spec](const auto& one) { return one.first == spec; });
    if (known != nullptr && !is_there) profile.drafters.emplace_back(spec, *known);
  });
  // Locks before reading, so that concurrent writes of other processes are not lost.
  AtomicFile written(file);
  std::error_code unknown;  // an unreadable file has nothing to keep
  if (std::filesystem::exists(file, unknown)) {
    try {
      profile = merge_profiles(std::move(profile), read_profile(file));
    } catch (const Error&) {
      // Nothing of it can be kept; loading it reported the error.
    }
  }
  written.write(to_text(profile));
  written.commit();
}

void Batch::load_drafting_profile(const std::filesystem::path& file) {
  DraftingProfile taken = read_profile(file);
  state_->planner.set_passes(std::move(taken.passes));
  state_->for_planned_drafters([&](const std::string& spec, Drafter& drafter) {
    const auto at = std::find_if(taken.drafters.begin(), taken.drafters.end(),
                                 [&spec](const auto& one) { return one.first == spec; });
    if (at != taken.drafters.end()) state_->planner.set_known(&drafter, at->second);
  });
}

// Visits drafters; of a drafter that chooses among others, these others.
void Batch::State::for_planned_drafters(
    const std::function<void(const std::string& spec, Drafter& drafter)>& visit) const {
  for (const NamedDrafter& named : drafters) {
    const std::span<const Drafter::Option> options = named.drafter->choices();
    if (options.empty()) visit(named.spec, *named.drafter);
    for (const Drafter::Option& option : options) visit(option.spec, *option.drafter);
  }
}

bool Batch::step() {
  State& state = *state_;
  state.take_submitted();
  state.end_early();
  state.admit();
  const bool any = !state.running.empty() || !state.waiting.empty();
  state.deliver_finished();  // texts that end early free their memory before the round
  state.run_round();
  state.deliver_finished();
  return any;
}

const Batch::State::NamedDrafter* Batch::State::find_drafter(const std::string& spec) const {
  const auto at = std::find_if(drafters.begin(), drafters.end(),
                               [&spec](const NamedDrafter& named) { return named.spec == spec; });
  return at == drafters.end() ? nullptr : &*at;
}

// Called with the mutex held.
std::shared_ptr<const Speculation> Batch::State::speculation_of(const SpeculationOptions& asked) {
  const State::NamedDrafter* const named = find_drafter(asked.drafter);
  if (named == nullptr && asked.drafter != "none") {
    std::vector<std::string_view> specs = {"none"};
    for (const NamedDrafter& other : drafters) specs.push_back(other.spec);
    throw UsageError("submit request", "drafter", fmt::format("one of {}", fmt::join(specs, " ")),
                     asked.drafter);
  }
  const std::shared_ptr<Drafter> drafter = named == nullptr ? nullptr : named->drafter;
  const auto at = std::find_if(known.begin(), known.end(), [&](const Known& one) {
    return same_specs(one.options, asked) && one.speculation->drafter == drafter;
  });
  if (at != known.end()) return at->speculation;
  SpeculationOptions options_asked = asked;
  options_asked.own_drafter = named == nullptr ? nullptr : named->own;
  auto speculation = std::make_shared<const Speculation>(make_speculation(
      model->tokenizer(), options_asked, drafter, named == nullptr ? nullptr : named->shape));
  known.push_front({std::move(options_asked), speculation});
  if (known.size() > kMaxKnown) known.pop_back();
  return speculation;
}

}  // namespace outrider
