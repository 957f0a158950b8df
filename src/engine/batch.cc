#include "outrider/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "engine/draft_planner.h"
#include "engine/drafting_profile.h"
#include "engine/generation.h"
#include "engine/round_report.h"
#include "engine/saved_text.h"
#include "engine/speculation.h"
#include "engine/text_cache.h"
#include "model/prefill.h"
#include "outrider/error.h"
#include "speculate/decoder.h"

namespace outrider {
namespace {

struct Submitted {
  std::chrono::steady_clock::time_point when = std::chrono::steady_clock::now();
  RequestId id = 0;
  GenerateRequest request;
  std::shared_ptr<const Speculation> speculation;
  Batch::OnEnd on_end;
};

// A request whose text is there.
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

  RequestId id;
  Generation generation;
  Batch::OnEnd on_end;
  DraftingText drafting;
  bool is_open = false;      // its stream has a sequence
  std::exception_ptr error;  // that ends it
};

// A drafter by the spec that requests name it by.
struct NamedDrafter {
  std::string spec;
  std::shared_ptr<Drafter> drafter;
  std::shared_ptr<const TreeShape> shape;  // without a tree
  std::optional<DrafterUpdates> updates;
};

// A speculation as requests spell it.
struct Known {
  SpeculationOptions options;
  std::shared_ptr<const Speculation> speculation;
};
// How many are remembered: they are few where settings are not made by the request.
constexpr std::size_t kMostKnown = 64;

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
  require("most_running", options.most_running, 1);
  require("prompt_rows", options.prompt_rows, 1);
  require("most_kept", options.most_kept, 0);
  return options;
}

}  // namespace

struct Batch::State {
  State(std::shared_ptr<const Model> target, const BatchOptions& batch_options)
      : model(std::move(target)), decoder(model->language_model()), options(batch_options) {
    kept.limit(static_cast<std::size_t>(options.most_kept));
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

  // Guards what follows.
  mutable std::mutex mutex;
  std::vector<NamedDrafter> drafters;
  std::deque<Known> known;  // the last ones asked for
  std::vector<Submitted> submitted;
  std::vector<RequestId> cancelled;
  RequestId next_id = 0;
  BatchLoad load;

  std::vector<RequestId> cancelling;  // taken from `cancelled`

  // The stepping thread's own.
  GrammarMatchers matchers;
  std::deque<std::unique_ptr<Running>> waiting;   // in their order
  std::vector<std::unique_ptr<Running>> running;  // in the order of admission
  TextCache kept;
  std::int64_t n_preempted = 0;
  DraftPlanner planner;
  std::vector<StreamShare> shares;  // of the round
  std::vector<Running*> sharing;    // of each of shares
  std::vector<SequenceGrowth> growths;
  std::vector<DraftPlanner::Text> planned;  // those of shares
  RoundReport report;                       // for options.observer
};

Batch::Batch(std::shared_ptr<const Model> model, std::span<const std::string> drafters,
             const ModelOptions& drafter_options, const BatchOptions& options)
    : state_(std::make_unique<State>(std::move(model), checked(options))) {
  for (const std::string& spec : drafters) {
    if (spec == "none" || state_->find_drafter(spec) != nullptr) continue;
    // A rule that any drafter can be judged by: what requests name is checked with them.
    Speculation made =
        make_speculation(*state_->model, {.drafter = spec, .drafter_options = drafter_options});
    state_->drafters.push_back(
        {spec, std::move(made.drafter), std::move(made.shape), std::move(made.updates)});
  }
}

// Drafters forget the texts that are cut off here with the batch itself.
Batch::~Batch() = default;

RequestId Batch::submit(GenerateRequest request, const SpeculationOptions& speculation,
                        OnEnd on_end) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  Submitted submitted{.id = state.next_id,
                      .request = std::move(request),
                      .speculation = state.speculation_of(speculation),
                      .on_end = std::move(on_end)};
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
  state_->kept.limit(static_cast<std::size_t>(options.most_kept));
}

RuleScope Batch::rule_scope(const SpeculationOptions& speculation) const {
  const std::lock_guard lock(state_->mutex);
  return state_->speculation_of(speculation)->scope;
}

bool Batch::update_drafters() {
  bool updated = false;
  for (NamedDrafter& named : state_->drafters) {
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
  if (state.options.most_kept == 0) {
    throw Error("load text", "kept texts", "room for one or more (most_kept)", "0");
  }
  LanguageModel& target = state.model->language_model();
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
    if (known != nullptr) profile.drafters.emplace_back(spec, *known);
  });
  write_file_atomically(file, to_text(profile));
}

void Batch::load_drafting_profile(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  DraftingProfile taken = read_drafting_profile(
      {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()}, file.string());
  state_->planner.set_passes(std::move(taken.passes));
  state_->for_planned_drafters([&](const std::string& spec, Drafter& drafter) {
    const auto at = std::find_if(taken.drafters.begin(), taken.drafters.end(),
                                 [&spec](const auto& one) { return one.first == spec; });
    if (at != taken.drafters.end()) state_->planner.set_known(&drafter, at->second);
  });
}

// Of a drafter that chooses among others, these.
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
  state.deliver_finished();  // those that end early leave their memory to the round
  state.run_round();
  state.deliver_finished();
  return any;
}

const NamedDrafter* Batch::State::find_drafter(const std::string& spec) const {
  const auto at = std::find_if(drafters.begin(), drafters.end(),
                               [&spec](const NamedDrafter& named) { return named.spec == spec; });
  return at == drafters.end() ? nullptr : &*at;
}

// With the mutex held.
std::shared_ptr<const Speculation> Batch::State::speculation_of(const SpeculationOptions& asked) {
  const NamedDrafter* const named = find_drafter(asked.drafter);
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
  auto speculation = std::make_shared<const Speculation>(
      make_speculation(asked, drafter, named == nullptr ? nullptr : named->shape));
  known.push_front({asked, speculation});
  if (known.size() > kMostKnown) known.pop_back();
  return speculation;
}

void Batch::State::take_submitted() {
  std::vector<Submitted> taken;
  {
    // Both at once: what is cancelled has been submitted.
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

// Takes the texts that waited longest, as long as there is room; those that have ended already just
// to be delivered.
void Batch::State::admit() {
  const auto n_most = static_cast<std::size_t>(options.most_running);
  for (auto next = waiting.begin(); next != waiting.end();) {
    if (!(*next)->generation.stream().finished && running.size() >= n_most) {
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

// Opens a text where the memory holds all of it beside what the others need next: kept texts give
// way to it, those that run do not. false: it has to wait.
bool Batch::State::open_if_it_fits(Running& text) {
  Stream& stream = text.generation.stream();
  // A text's first token does not wait for its drafter, and one that comes in begins as the others
  // go on. Beside others a drafter runs the prompt in the pieces that the target does.
  const auto runs = [](const std::unique_ptr<Running>& one) {
    return !one->generation.stream().finished;
  };
  const bool is_alone = std::count_if(running.begin(), running.end(), runs) == 1;
  stream.defers_drafter = text.generation.speculation().adaptive && planner.is_measured() &&
                          (is_alone || !planner.pays(stream.drafting.drafter));
  const KeptText* earlier = kept.find(stream);
  decoder.open_target(stream, earlier);
  const auto holds = [&] {
    list_growths(Drafts::none);
    growths.push_back(stream.growth(static_cast<int>(stream.n_to_run()) + 1));
    const Drafter* const drafter = stream.drafting.drafter;
    if (earlier != nullptr && stream.has_other_drafter(*earlier) && drafter != nullptr &&
        drafter->uses_target_cache()) {
      growths.back().n_tokens += static_cast<int>(stream.n_run);  // its own run of these
    }
    return model->language_model().fits(growths);
  };
  while (!holds()) {
    // The earlier one stands first, and goes last.
    if (kept.size() > (earlier != nullptr ? 1U : 0U)) {
      kept.drop_oldest();
    } else if (!shares.empty()) {
      stream.sequence.reset();
      return false;
    } else {  // alone, a text has to fit: its pass says that it does not
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

// Every text that is there drafts; those with tokens to run share the rows for these, the first
// come first.
void Batch::State::plan_shares() {
  shares.clear();
  sharing.clear();
  const auto drafts = [](const std::unique_ptr<Running>& text) {
    return text->is_open && !text->generation.stream().finished &&
           text->generation.stream().n_to_run() == 0;
  };
  const bool any_drafts = std::any_of(running.begin(), running.end(), drafts);
  auto n_left = static_cast<std::size_t>(any_drafts ? options.prompt_rows : kPrefillRows);
  bool is_full = false;  // a text waits for memory: none may pass it
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

// What the pass needs at most. A text that outgrows its sequence is run anew.
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

// Until the pass fits, drops kept texts, for drafts as well; then takes texts out of it, the last
// one first, and with it what it has of the memory. Alone, a text has to fit: the pass says that it
// does not.
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

// How deep the texts of the round draft.
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

// A drafter that update_drafters() has replaced goes by its name: its spec is another one's now.
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
      return text.generation.commit(committed);
    } catch (...) {
      text.fail(std::current_exception());
      return true;
    }
  };
  try {
    const RoundTimes times = decoder.round(shares, on_commit);
    if (is_observed) tell_of_round(times);
    for (Running* const text : sharing) text->generation.end_round(times);
    planner.learn(planned, times,
                  [this](const Drafter* drafter) { return decoder.draft_seconds(drafter); });
  } catch (...) {
    // What a pass left half done is nobody's fault in particular, and no state to go on from.
    for (Running* const text : sharing) {
      if (!text->error) text->fail(std::current_exception());
    }
  }
}

// Not one that update_drafters() has replaced.
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
          .n_preempted = n_preempted};
}

void Batch::State::deliver_finished() {
  // on_end may submit: the lists are in order before it is called.
  std::vector<std::unique_ptr<Running>> finished;
  for (auto& text : running) {
    if (text->generation.stream().finished) finished.push_back(std::move(text));
  }
  std::erase(running, nullptr);
  for (const auto& text : finished) {
    Stream& stream = text->generation.stream();
    planner.ended(static_cast<std::int64_t>(stream.tokens.size()) - stream.n_prompt);
    if (text->error == nullptr && text->is_open && options.most_kept > 0 &&
        is_in_use(text->generation.drafter())) {
      kept.add({.id = stream.id,
                .drafter = text->generation.drafter(),
                .tokens = stream.tokens,
                .sequence = std::move(stream.sequence)});
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
    } catch (...) {  // of the verdict log
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
