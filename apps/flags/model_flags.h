// SPDX-License-Identifier: Apache-2.0
// Flags common to all commands that run a model: which model, how it is stored, and how drafts are
// made.
#ifndef OUTRIDER_APPS_FLAGS_MODEL_FLAGS_H_
#define OUTRIDER_APPS_FLAGS_MODEL_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "apps/cli/interrupt.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::cli {

struct ModelFlags {
  std::string model;          // PATH
  ModelOptions options;       // of the target; the drafter's are the same
  std::string draft_path;     // --draft; excludes --drafter
  std::string cascade;        // --cascade; excludes both and --model, which it sets
  bool says_drafter = false;  // --drafter was given, even as none
  bool says_verify = false;   // --verify was given
  // Without --tree, draft lengths are planned by expected gain (--tree auto).
  bool plans_drafts = false;
  double rank_timeout = 60;  // --rank-timeout, seconds
  std::string profile;       // --profile: a file, or "none"; empty: in the user's cache
  SpeculationOptions speculation;
};

// --model alone, for commands that read a model's files without running it.
void add_model_path(CLI::App& app, std::string& path);

// Which model to load, and how to store and run it.
void add_loading_flags(CLI::App& app, ModelFlags& flags);
// The device of passes. bench has a flag of its own, which also accepts predefined devices.
void add_device_flag(CLI::App& app, ModelFlags& flags);
// The drafter, and what limits its drafts.
void add_drafter_flags(CLI::App& app, ModelFlags& flags);
// All of these, and the flags of draft shape and verification.
void add_model_flags(CLI::App& app, ModelFlags& flags);
// Call it after add_model_flags(). Makes --tree auto the default; what it measures is kept in the
// profile.
void add_profile_flag(CLI::App& app, ModelFlags& flags);
// --profile alone, for commands where other flags plan the drafts; `words` is its description.
CLI::Option* add_profile_place(CLI::App& app, ModelFlags& flags, const std::string& words);
// Call it after add_model_flags(). One flag for a cascade of three models.
void add_cascade_flag(CLI::App& app, ModelFlags& flags);

// The speculation options of the flags: --draft converted to --drafter's form, and the model's
// options copied to the drafter's.
SpeculationOptions speculation_of(const ModelFlags& flags);

// Load, with a bar on standard error if it takes long. Throw Error, UsageError or Interrupted;
// invalid specs are refused before the model is loaded.
std::shared_ptr<const Model> load_model(const ModelFlags& flags, const Interrupt& interrupt);
Generator make_generator(std::shared_ptr<const Model> model, const ModelFlags& flags,
                         const Interrupt& interrupt);

// Call it between texts. Switches to a better drafter if the drafter's spec names a place for
// updates, and reports a new drafter's use or failure on standard error.
void update_drafter(Generator& generator);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_FLAGS_MODEL_FLAGS_H_
