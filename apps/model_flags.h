// Flags that are the same in every command that runs a model: which, how stored, and how drafted.
#ifndef OUTRIDER_APPS_MODEL_FLAGS_H_
#define OUTRIDER_APPS_MODEL_FLAGS_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "interrupt.h"
#include "outrider/generate.h"
#include "outrider/model.h"

namespace outrider::cli {

struct ModelFlags {
  std::string model;          // PATH
  ModelOptions options;       // of the target; the drafter's are the same
  std::string draft_path;     // --draft; excludes --drafter
  std::string cascade;        // --cascade; excludes both and --model, which it fills in
  bool says_drafter = false;  // --drafter was given, be it none
  bool says_verify = false;   // --verify was given
  // Without --tree, drafts are as deep as pays (--tree auto).
  bool plans_drafts = false;
  double rank_timeout = 60;  // --rank-timeout, in seconds
  std::string profile;       // --profile: a file, or "none"; empty: one in the user's cache
  SpeculationOptions speculation;
};

// --model alone, for commands that read a model's files and run nothing.
void add_model_path(CLI::App& app, std::string& path);

// Which model, and how it is held and run.
void add_loading_flags(CLI::App& app, ModelFlags& flags);
// On which device passes run, for commands whose results do not hang on the processor's times.
void add_device_flag(CLI::App& app, ModelFlags& flags);
// What rides ahead.
void add_drafter_flags(CLI::App& app, ModelFlags& flags);
// All of these, and how drafts are shaped and judged.
void add_model_flags(CLI::App& app, ModelFlags& flags);
// After those: --tree auto is the default, and what it learns is kept.
void add_profile_flag(CLI::App& app, ModelFlags& flags);
// --profile alone, for commands where drafts are planned by other flags; `words` describes it.
CLI::Option* add_profile_place(CLI::App& app, ModelFlags& flags, const std::string& words);
// After those: three models named at once.
void add_cascade_flag(CLI::App& app, ModelFlags& flags);

// What the flags say of drafting, --draft put into --drafter's terms and the model's options into
// the drafter's.
SpeculationOptions speculation_of(const ModelFlags& flags);

// Load, with a bar on standard error if it takes a while. Throw Error, UsageError or Interrupted;
// specs that cannot be read are refused before the model is loaded.
std::shared_ptr<const Model> load_model(const ModelFlags& flags, const Interrupt& interrupt);
Generator make_generator(std::shared_ptr<const Model> model, const ModelFlags& flags,
                         const Interrupt& interrupt);

// To be called between texts: takes up a better drafter, where the spec names a place for it, and
// says on standard error what became of one that has turned up.
void update_drafter(Generator& generator);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_MODEL_FLAGS_H_
