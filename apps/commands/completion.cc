// SPDX-License-Identifier: Apache-2.0
// outrider completion and outrider man: completions for shells, and manual pages.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/command_tree.h"
#include "apps/cli/completion_scripts.h"
#include "apps/cli/flag_values.h"
#include "apps/cli/manual_pages.h"
#include "apps/cli/terminal.h"
#include "apps/cli/version.h"
#include "apps/commands.h"
#include "apps/commands/trainer_program.h"
#include "apps/commands/tree_descriptions.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider::cli {
namespace {

// Replaces the names of outrider-train's commands, which are all that this program knows, by their
// full descriptions. Leaves them if that program is missing.
void take_trainer_commands(CommandDescription& program) {
  const std::string text = trainer_output("describe");
  if (text.empty()) return;
  const CommandDescription trainer = command_from_json(text);
  for (CommandDescription& command : program.commands) {
    if (command.name != "train") continue;
    for (CommandDescription& below : command.commands) {
      for (const CommandDescription& known : trainer.commands) {
        if (known.name == below.name) below = known;
      }
    }
  }
}

std::vector<std::string> spec_names(const std::vector<SpecDescription>& specs) {
  std::vector<std::string> names;
  names.reserve(specs.size());
  for (const SpecDescription& one : specs) names.push_back(one.name);
  return names;
}

// A spec begins with one of a few names, which are offered; the rest is typed.
void offer_specs(CommandDescription& command) {
  for (FlagDescription& flag : command.flags) {
    const std::string& name = flag.names.back();
    const bool explains = flag.is_place && name == "NAME";
    if (name == "--drafter" || (explains && command.name == "drafters")) {
      flag.choices = spec_names(known_drafters());
    } else if (name == "--rule" || (explains && command.name == "rules")) {
      flag.choices = spec_names(known_rules());
    } else if (name == "--tree" || (explains && command.name == "trees")) {
      flag.choices = spec_names(known_trees());
    } else {
      continue;
    }
    // A --drafter that takes a folder of a model, as in train online, is left alone.
    if (flag.value != "SPEC" && !explains) {
      flag.choices.clear();
      continue;
    }
    flag.kind = ValueKind::choice;
    flag.completes_prefix = !explains;
  }
  for (CommandDescription& below : command.commands) offer_specs(below);
}

CommandDescription whole_program(const CLI::App& program) {
  CommandDescription whole = describe_commands(program);
  take_trainer_commands(whole);
  offer_specs(whole);
  return whole;
}

// Today, or the date set for reproducible packages, as 2026-01-31.
std::string page_date() {
  std::time_t seconds = std::time(nullptr);
  if (const char* const given = std::getenv("SOURCE_DATE_EPOCH"); given != nullptr) {
    seconds = static_cast<std::time_t>(std::strtoll(given, nullptr, 10));
  }
  std::tm day{};
  ::gmtime_r(&seconds, &day);
  constexpr int kFirstYear = 1900;
  return fmt::format("{:04}-{:02}-{:02}", day.tm_year + kFirstYear, day.tm_mon + 1, day.tm_mday);
}

int write_pages(const CLI::App& program, const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const std::string version = fmt::format("outrider {}", kVersion);
  for (const ManualPage& page : manual_pages(whole_program(program), version, page_date())) {
    const std::filesystem::path path = folder / page.file;
    std::ofstream file(path, std::ios::binary);
    file << page.text;
    file.close();
    if (!file)
      throw Error("write manual page", path.string(), "a file that can be written", "none");
  }
  return 0;
}

}  // namespace

CLI::App* add_completion(CLI::App& program, Run& run) {
  CLI::App* app =
      program.add_subcommand("completion", "Print what completes commands and flags in a shell")
          ->group("Commands");
  const auto shell = std::make_shared<std::string>();
  add_choice(*app, "SHELL", *shell, {"bash", "zsh", "fish"}, "bash, zsh or fish")
      ->required()
      ->group("Which");
  app->footer(
      "Installed packages have these files in place.\n"
      "Examples:\n"
      "  outrider completion zsh > ~/.zfunc/_outrider\n"
      "  outrider completion fish > ~/.config/fish/completions/outrider.fish\n"
      "  source <(outrider completion bash)\n");
  run = [shell, &program] {
    const CommandDescription whole = whole_program(program);
    Output output;
    if (*shell == "bash") {
      output.write(bash_completion(whole));
    } else if (*shell == "zsh") {
      output.write(zsh_completion(whole));
    } else {
      output.write(fish_completion(whole));
    }
    output.check();
    return 0;
  };
  return app;
}

CLI::App* add_man(CLI::App& program, Run& run) {
  CLI::App* app = program.add_subcommand("man", "Write manual pages of all commands")->group("");
  const auto folder = std::make_shared<std::string>();
  add_path(*app, "DIR", *folder, "DIR", "The folder that gets them")->required()->group("Where to");
  app->footer(
      "Example:\n"
      "  outrider man share/man/man1\n");
  run = [folder, &program] { return write_pages(program, *folder); };
  return app;
}

}  // namespace outrider::cli
