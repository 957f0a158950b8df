// SPDX-License-Identifier: Apache-2.0
// outrider datastore: texts for lookup drafters.
#include "outrider/datastore.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/output_place.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "apps/flags/text_flags.h"
#include "apps/load_progress.h"
#include "outrider/error.h"

namespace outrider::cli {
namespace {

struct BuildFlags {
  std::string model;
  std::vector<std::filesystem::path> texts;
  std::string out;
  std::string separator;
  int segment_tokens = static_cast<int>(DatastoreOptions().segment_tokens);
};

struct InspectDatastoreFlags {
  std::string path;
  bool check = false;
  bool json = false;
};

std::string show(const std::string& path, const DatastoreSummary& summary) {
  return fmt::format("{}: {} of {} in {}, {:.1f} MiB, for a vocabulary of {} tokens ({:016x})\n",
                     one_line(path), counted(static_cast<std::int64_t>(summary.n_tokens), "token"),
                     counted(static_cast<std::int64_t>(summary.n_documents), "document"),
                     counted(summary.n_segments, "segment"),
                     static_cast<double>(summary.n_bytes) / (1 << 20), summary.vocabulary_size,
                     summary.vocabulary_fingerprint);
}

std::string to_json(const std::string& path, const DatastoreSummary& summary) {
  nlohmann::ordered_json object;
  object["path"] = path;
  object["n_tokens"] = summary.n_tokens;
  object["n_documents"] = summary.n_documents;
  object["n_segments"] = summary.n_segments;
  object["n_bytes"] = summary.n_bytes;
  object["vocabulary_size"] = summary.vocabulary_size;
  // As a string: many JSON readers cannot represent 64-bit numbers.
  object["vocabulary_fingerprint"] = fmt::format("{:016x}", summary.vocabulary_fingerprint);
  return object.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int run_build(const BuildFlags& flags) {
  std::vector<std::filesystem::path> read = flags.texts;
  add_files_of_model(flags.model, read);
  require_not_read(flags.out, read);
  const Interrupt interrupt;
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(flags.model);
  DatastoreSummary summary;
  {
    LoadProgress progress("building datastore", interrupt);
    DatastoreOptions options;
    options.separator = flags.separator;
    options.segment_tokens = static_cast<std::uint32_t>(flags.segment_tokens);
    options.progress = [&progress](double share_done) { progress.show(share_done); };
    summary = build_datastore(*tokenizer, flags.texts, flags.out, options);
  }
  Output output;
  output.write(show(flags.out, summary));
  output.check();
  return 0;
}

int run_inspect(const InspectDatastoreFlags& flags) {
  const DatastoreSummary summary = inspect_datastore(flags.path, flags.check);
  Output output;
  output.write(flags.json ? to_json(flags.path, summary) : show(flags.path, summary));
  output.check();
  return 0;
}

CLI::App* add_build(CLI::App& datastore, Run& run_command) {
  CLI::App* app = datastore.add_subcommand("build", "Make a datastore from text");
  const auto flags = std::make_shared<BuildFlags>();
  add_path(*app, "-m,--model", flags->model, "PATH",
           "The target whose drafts it is for: a Hugging Face directory or a .gguf file, of which "
           "only the vocabulary is read (required)")
      ->required()
      ->group("Files");
  add_text_paths(*app, flags->texts, "Files");
  add_path(
      *app, "--out", flags->out, "FILE",
      "Where to: replaced when all is written, so that it is never half a datastore; of a link, "
      "what it points to (required)")
      ->group("Files")
      ->required();
  add_filled_text(
      *app, "--separator", flags->separator, "TEXT", "a text",
      "What stands between the documents of a file; no draft goes on from one into the next "
      "(default: a file is one document)")
      ->group("Form");
  add_integer(*app, "--segment", flags->segment_tokens, 1,
              "Tokens sorted at once, which take 20 bytes of memory each; fewer segments make "
              "faster drafts (default: 16777216, which take 320 MiB)")
      ->group("Form");
  app->footer(
      "Examples:\n"
      "  outrider datastore build --model model.gguf --text books --out books.store\n"
      "  outrider datastore build --model stories260K --text stories.txt \\\n"
      "      --separator \"<|endoftext|>\" --out stories.store\n"
      "  outrider generate --model stories260K --drafter retrieval:path=stories.store \\\n"
      "      --prompt \"Once upon a time\"\n");
  run_command = [flags] { return run_build(*flags); };
  return app;
}

CLI::App* add_inspect_datastore(CLI::App& datastore, Run& run_command) {
  CLI::App* app = datastore.add_subcommand("inspect", "Show what a datastore holds");
  const auto flags = std::make_shared<InspectDatastoreFlags>();
  add_path(*app, "--path", flags->path, "FILE", "The datastore (required)")->required();
  app->add_flag("--check", flags->check, "Read all of it and compare the checksums, too");
  app->add_flag("--json", flags->json, "As JSON");
  app->footer(
      "Examples:\n"
      "  outrider datastore inspect --path books.store\n"
      "  outrider datastore inspect --path books.store --check --json\n");
  run_command = [flags] { return run_inspect(*flags); };
  return app;
}

}  // namespace

CLI::App* add_datastore(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("datastore", "Make or show text that drafts are looked up in")
          ->group("Commands");
  const auto run_build = std::make_shared<Run>();
  const auto run_inspect = std::make_shared<Run>();
  const CLI::App* build = add_build(*app, *run_build);
  const CLI::App* inspect = add_inspect_datastore(*app, *run_inspect);
  app->footer(
      "Examples:\n"
      "  outrider datastore build --model model.gguf --text books --out books.store\n"
      "  outrider datastore inspect --path books.store\n"
      "  outrider generate --model model.gguf --drafter retrieval:path=books.store \\\n"
      "      --prompt \"It was the best of times\"\n");
  run_command = [run_build, run_inspect, build, inspect] {
    if (build->parsed()) return (*run_build)();
    if (inspect->parsed()) return (*run_inspect)();
    throw UsageError("read flags", "datastore", "build or inspect",
                     "neither (see outrider datastore --help)");
  };
  return app;
}

}  // namespace outrider::cli
