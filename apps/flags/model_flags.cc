// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/model_flags.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/load_progress.h"
#include "apps/run_on_ranks.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider::cli {

void add_model_path(CLI::App& app, std::string& path) {
  add_path(app, "-m,--model", path, "PATH",
           "The model: a Hugging Face directory or a .gguf file. A directory has config.json, "
           "*.safetensors and tokenizer.json or tokenizer.model")
      ->required()
      ->group("Model");
}

namespace {

constexpr const char* kSpeculation = "Speculation";
constexpr const char* kAutoTree = "auto";
constexpr const char* kOwnTree = "own";

}  // namespace

void add_loading_flags(CLI::App& app, ModelFlags& flags) {
  constexpr const char* kModel = "Model";
  add_model_path(app, flags.model);
  add_choice(app, "--weights", flags.options.weights, {"f32", "bf16", "int8", "int4"},
             "Type of the weights in memory (default: as stored). The drafter's, too, if its spec "
             "names none")
      ->group(kModel);
  add_choice(app, "--kv", flags.options.kv, {"f32", "bf16", "int8"},
             "Type of the KV cache (default: f32 for f32 weights, else bf16)")
      ->group(kModel);
  add_bytes(
      app, "--kv-memory", flags.options.kv_memory_bytes,
      "Most memory for the KV cache of all texts together, as 512M or 1.5G; each drafter's may "
      "take as much again (default: 0, no limit)")
      ->group(kModel);
  add_choice(app, "--experts", flags.options.experts, {"memory", "mapped"},
             "Where experts are; mapped: in their file (default: memory)")
      ->group(kModel);
  add_bytes(app, "--experts-memory", flags.options.expert_memory_bytes,
            "Memory for mapped experts (default: 0, half of the machine's)")
      ->group(kModel);
  add_integer(app, "--threads", flags.options.threads, 0,
              "Threads; 0 takes every processor (default: 0)")
      ->group(kModel);
  show_usual(app, {"--model", "--weights", "--threads"});
}

void add_device_flag(CLI::App& app, ModelFlags& flags) {
  add_filled_text(
      app, "--device", flags.options.device, "NAME",
      "a device that outrider devices lists (vulkan:0), or vulkan, or cuda",
      "Where passes run, those of a drafter's model, too: a device that outrider devices "
      "lists (vulkan:0, cuda:0), or vulkan or cuda, the first that is no software; the text is "
      "the same (default: the processor)")
      ->group("Model");
}

void add_drafter_flags(CLI::App& app, ModelFlags& flags) {
  SpeculationOptions& speculation = flags.speculation;
  CLI::Option* drafter = add_filled_text(app, "--drafter", speculation.drafter, "SPEC",
                                         "a drafter (none, model:PATH, ...)",
                                         "none (default), model:PATH, suffix, ...; see outrider "
                                         "drafters")
                             ->each([&flags](const std::string&) { flags.says_drafter = true; })
                             ->group(kSpeculation);
  add_path(app, "--draft", flags.draft_path, "PATH",
           "Short for --drafter model:PATH, with the target's vocabulary")
      ->group(kSpeculation)
      ->excludes(drafter);
  show_usual(app, {"--drafter", "--draft"});
}

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  add_loading_flags(app, flags);
  add_drafter_flags(app, flags);
  SpeculationOptions& speculation = flags.speculation;
  add_filled_text(app, "--tree", speculation.tree, "SPEC",
                  "auto, own or a shape (chain:, widths:, static:, dynamic:, best: or sequoia:)",
                  "own (default), auto, chain:length=K, ...; see outrider trees")
      ->group(kSpeculation);
  add_filled_text(app, "--rule", speculation.rule, "SPEC", "a rule (exact, chow:alpha=A, ...)",
                  "exact (default), token-v3:alpha=A, ...; see outrider rules")
      ->group(kSpeculation);
  add_choice(app, "--verify", speculation.verify, {"exact", "block", "traversal", "coupled"},
             "How drafts are verified: exact, token by token; block, a chain as a whole, and "
             "traversal, a tree as a whole, which accept more and keep the distribution; coupled, "
             "with the bits of plain sampling with the seed (default: exact)")
      ->each([&flags](const std::string&) { flags.says_verify = true; })
      ->group(kSpeculation);
  show_usual(app, {"--tree", "--rule"});
}

CLI::Option* add_profile_place(CLI::App& app, ModelFlags& flags, const std::string& words) {
  return add_path(app, "--profile", flags.profile, "FILE", words);
}

void add_profile_flag(CLI::App& app, ModelFlags& flags) {
  flags.plans_drafts = true;
  app.get_option("--tree")->description(
      "auto (default), own, chain:length=K, ...; see outrider trees");
  add_profile_place(
      app, flags,
      "Where --tree auto, the default, keeps what passes cost and drafts brought, for the next "
      "time; none: nowhere (default: a file of the model's in ~/.cache/outrider)")
      ->group(kSpeculation);
}

// The flag names three models at once. Its callback runs before CLI11 checks required flags.
void add_cascade_flag(CLI::App& app, ModelFlags& flags) {
  CLI::Option* const model = app.get_option("--model");
  add_filled_text(app, "--cascade", flags.cascade, "SPEC", "three models, spec:A>B>C",
                  "Three models instead of --model and a drafter: spec:A>B>C (in quotes), from the "
                  "smallest to the largest, each draft judged twice by --rule")
      ->group(kSpeculation)
      ->excludes(model)
      ->excludes(app.get_option("--drafter"))
      ->excludes(app.get_option("--draft"))
      ->each([&flags, model](const std::string& spec) {
        if (spec.empty()) return;  // refused when the flag's value is read
        model->required(false);
        flags.model = read_cascade(spec, "exact").model;
      });
}

SpeculationOptions speculation_of(const ModelFlags& flags) {
  SpeculationOptions speculation = flags.speculation;
  speculation.drafter_options = flags.options;
  // With any other rule, a text depends on the drafts' depths, and those depend on the clock: the
  // same seed would not give the text again.
  const bool by_default =
      flags.plans_drafts && speculation.tree.empty() && speculation.rule == "exact";
  if (speculation.tree == kOwnTree) {
    speculation.tree.clear();
  } else if (speculation.tree == kAutoTree || by_default) {
    speculation.tree.clear();
    speculation.adaptive = true;
    // Draft depths depend on the clock. With "coupled" a seed gives the same text nevertheless.
    if (!flags.says_verify && speculation.rule == "exact") speculation.verify = "coupled";
  }
  if (!flags.cascade.empty()) {
    speculation.drafter = read_cascade(flags.cascade, speculation.rule).drafter;
  } else if (!flags.draft_path.empty()) {
    speculation.drafter = "model:" + escape_spec_value(flags.draft_path);
  }
  return speculation;
}

namespace {

// A --tree other than auto, or a --verify other than exact, needs a drafter, unless the user says
// --drafter none.
void require_drafter_for_drafts(const ModelFlags& flags) {
  if (flags.says_drafter || !flags.draft_path.empty() || !flags.cascade.empty()) return;
  const auto refuse = [](const char* flag) {
    throw UsageError("read flags", flag, "a drafter (--drafter SPEC or --draft PATH)", "none");
  };
  if (!flags.speculation.tree.empty() && flags.speculation.tree != kAutoTree) refuse("--tree");
  if (flags.speculation.verify != SpeculationOptions().verify) refuse("--verify");
}

}  // namespace

std::shared_ptr<const Model> load_model(const ModelFlags& flags, const Interrupt& interrupt) {
  check_speculation(speculation_of(flags));
  require_drafter_for_drafts(flags);
  std::shared_ptr<const Model> model;
  {
    LoadProgress progress("loading model", interrupt);
    ModelOptions options = flags.options;
    options.ranks = ranks_in_use();
    options.progress = [&progress](double share_done) { progress.show(share_done); };
    model = Model::load(flags.model, options);
  }
  print_warnings(model->warnings());
  interrupt.throw_if_raised();
  return model;
}

Generator make_generator(std::shared_ptr<const Model> model, const ModelFlags& flags,
                         const Interrupt& interrupt) {
  LoadProgress progress("loading drafter", interrupt);
  SpeculationOptions speculation = speculation_of(flags);
  speculation.drafter_options.progress = [&progress](double share) { progress.show(share); };
  Generator generator(std::move(model), speculation);
  interrupt.throw_if_raised();
  return generator;
}

void update_drafter(Generator& generator) {
  try {
    if (generator.update_drafter()) fmt::print(stderr, "(a new drafter is in use)\n");
  } catch (const Error& error) {
    fmt::print(stderr, "outrider: {}; the drafter stays as it was\n", one_line(error.what()));
  }
}

}  // namespace outrider::cli
