// SPDX-License-Identifier: Apache-2.0
// outrider drafters, rules and trees: the values of --drafter, --rule and --tree.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "apps/commands/tree_descriptions.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider::cli {
namespace {

using SpecJson = nlohmann::ordered_json;

constexpr std::size_t kSpecWidth = 80;   // the usual width of a terminal
constexpr std::size_t kSpecColumn = 30;  // where a key's description begins

// The differences between the commands.
struct SpecList {
  const char* command;  // "drafters"
  const char* one;      // "drafter"
  const char* flag;     // takes these specs
  const char* other;    // values besides those of the list
  std::vector<SpecDescription> (*known)();
};

constexpr SpecList kDrafterList = {
    "drafters", "drafter", "--drafter",
    "--drafter none (the default) drafts nothing. PATH: a Hugging Face directory or a .gguf file.",
    known_drafters};
constexpr SpecList kRuleList = {
    "rules", "rule", "--rule",
    "distributions: of the drafter, as model:, pard:, eagle:, medusa:, dflash:, dspark:, mtp, "
    "layerskip:, staged: and cascade: have them.",
    known_rules};
constexpr SpecList kTreeList = {"trees", "tree", "--tree",
                                "A draft has 255 nodes at most. At temperature 0 all nodes are the "
                                "drafter's likeliest tokens.",
                                known_trees};

std::string table_of(const SpecList& list) {
  const std::vector<SpecDescription> known = list.known();
  std::size_t form_width = 0;
  std::size_t summary_width = 0;
  for (const SpecDescription& one : known) {
    form_width = std::max(form_width, one.form.size());
    summary_width = std::max(summary_width, one.summary.size());
  }
  const auto row = [&](std::string_view form, std::string_view summary, std::string_view needs) {
    return fmt::format("{:<{}}  {:<{}}  {}\n", form, form_width, summary, summary_width, needs);
  };
  std::string text = row(list.flag, "what it is", "needs");
  for (const SpecDescription& one : known) text += row(one.form, one.summary, one.needs);
  text += "\n" + wrap_words(list.other, 0, kSpecWidth) + "\n";
  return text + fmt::format("outrider {} NAME explains one, with its keys.\n", list.command);
}

std::string explain(const SpecDescription& one) {
  const auto paragraph = [](const std::string& text) {
    return "  " + wrap_words(text, 2, kSpecWidth) + "\n";
  };
  std::string text = fmt::format("{}: {}\nNeeds: {}\n\n", one.form, one.summary, one.needs);
  text += wrap_words(one.about, 0, kSpecWidth) + "\n";
  if (!one.keys.empty()) text += "\nKeys, behind the colon and with commas between them:\n";
  for (const KeyDescription& key : one.keys) {
    std::string words = key.meaning;
    if (!key.default_value.empty()) words += fmt::format(" (default: {})", key.default_value);
    if (key.repeatable) words += " (may be repeated)";
    text += fmt::format("{:<{}}{}\n", fmt::format("  {}={}", key.name, key.value), kSpecColumn,
                        wrap_words(words, kSpecColumn, kSpecWidth));
  }
  text += "\nSource:\n" + paragraph(one.source);
  text += "\nWhen it pays:\n" + paragraph(one.pays);
  return text + fmt::format("\nExample:\n  {}\n", one.example);
}

SpecJson to_json(const SpecDescription& one) {
  SpecJson keys = SpecJson::array();
  for (const KeyDescription& key : one.keys) {
    SpecJson entry;
    entry["name"] = key.name;
    entry["value"] = key.value;
    entry["default"] = key.default_value.empty() ? SpecJson() : SpecJson(key.default_value);
    entry["meaning"] = key.meaning;
    entry["example"] = key.example;
    entry["repeatable"] = key.repeatable;
    keys.push_back(std::move(entry));
  }
  SpecJson object;
  object["name"] = one.name;
  object["form"] = one.form;
  object["summary"] = one.summary;
  object["needs"] = one.needs;
  object["about"] = one.about;
  object["keys"] = std::move(keys);
  object["source"] = one.source;
  object["pays"] = one.pays;
  object["example"] = one.example;
  return object;
}

// The kind with that name; a whole spec names its kind.
SpecDescription find_kind(const SpecList& list, const std::string& asked) {
  const std::vector<SpecDescription> known = list.known();
  const auto at = std::find_if(known.begin(), known.end(), [&asked](const SpecDescription& one) {
    return one.name == asked.substr(0, asked.find(':'));
  });
  if (at != known.end()) return *at;
  std::vector<std::string> names;
  names.reserve(known.size());
  for (const SpecDescription& one : known) names.push_back(one.name);
  throw UsageError(fmt::format("describe {}", list.one), asked,
                   fmt::format("one of {}", fmt::join(names, ", ")), asked);
}

CLI::App* add_spec_command(CLI::App& program, Run& run, const SpecList& list,
                           const char* description, const char* example) {
  struct Flags {
    std::string name;
    bool json = false;
  };
  CLI::App* app = program.add_subcommand(list.command, description)->group("Commands");
  const auto flags = std::make_shared<Flags>();
  CLI::Option* name =
      add_filled_text(*app, "NAME", flags->name, "", fmt::format("the name of a {}", list.one),
                      fmt::format("Explain this {} alone, with its keys", list.one))
          ->group("What");
  app->add_flag("--json", flags->json, "As JSON: the list, or the one that is named")
      ->group("Form");
  run = [flags, name, list] {
    Output output;
    if (name->count() > 0) {
      const SpecDescription one = find_kind(list, flags->name);
      output.write(flags->json ? to_json(one).dump(2) + "\n" : explain(one));
    } else if (flags->json) {
      SpecJson all = SpecJson::array();
      for (const SpecDescription& one : list.known()) all.push_back(to_json(one));
      output.write(all.dump(2) + "\n");
    } else {
      output.write(table_of(list));
    }
    output.check();
    return 0;
  };
  app->footer(fmt::format("Examples:\n  outrider {0}\n  outrider {0} {1}\n  outrider {0} --json\n",
                          list.command, example));
  return app;
}

}  // namespace

CLI::App* add_drafters(CLI::App& program, Run& run) {
  return add_spec_command(program, run, kDrafterList, "List the drafters, or explain one", "model");
}

CLI::App* add_rules(CLI::App& program, Run& run) {
  return add_spec_command(program, run, kRuleList, "List the rules of acceptance, or explain one",
                          "chow");
}

CLI::App* add_trees(CLI::App& program, Run& run) {
  return add_spec_command(program, run, kTreeList, "List the shapes of a draft, or explain one",
                          "widths");
}

}  // namespace outrider::cli
