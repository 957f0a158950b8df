// SPDX-License-Identifier: Apache-2.0
// outrider inspect: the contents of a model's files, and the kernels of this machine.
#include "outrider/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "apps/commands.h"
#include "outrider/error.h"
#include "outrider/model.h"

namespace outrider::cli {
namespace {

using Json = nlohmann::ordered_json;

struct InspectFlags {
  std::string model;
  std::vector<std::string> pair;
  bool kernels = false;
  bool json = false;
};

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::int64_t n_elements(const TensorSummary& tensor) {
  std::int64_t n = 1;
  for (const std::int64_t size : tensor.shape) n *= size;
  return n;
}

struct Totals {
  std::int64_t n_parameters = 0;
  std::int64_t n_bytes = 0;
};

Totals add_up(const FileSummary& summary) {
  Totals totals;
  for (const TensorSummary& tensor : summary.tensors) {
    totals.n_parameters += n_elements(tensor);
    totals.n_bytes += tensor.n_bytes;
  }
  return totals;
}

// 1234567 -> "1.23 M" with the units of kSteps; small numbers unchanged.
std::string shorten(std::int64_t number, double base, const char* const (&units)[5]) {
  double value = static_cast<double>(number);
  std::size_t unit = 0;
  while (value >= base && unit + 1 < std::size(units)) {
    value /= base;
    ++unit;
  }
  return unit == 0 ? fmt::format("{}{}", number, units[0])
                   : fmt::format("{:.2f}{}", value, units[unit]);
}

std::string show_bytes(std::int64_t n_bytes) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  return shorten(n_bytes, 1024, kUnits);
}

std::string show_count(std::int64_t count) {
  constexpr const char* kUnits[] = {"", " thousand", " million", " billion", " trillion"};
  return shorten(count, 1000, kUnits);
}

std::string show_shape(const TensorSummary& tensor) {
  return tensor.shape.empty() ? "scalar" : fmt::format("{}", fmt::join(tensor.shape, " x "));
}

std::string to_json(const std::string& path, const FileSummary& summary) {
  const Totals totals = add_up(summary);
  Json metadata = Json::object();
  for (const auto& [key, value] : summary.metadata) metadata[key] = value;
  Json tensors = Json::array();
  for (const TensorSummary& tensor : summary.tensors) {
    Json entry;
    entry["name"] = tensor.name;
    entry["type"] = tensor.type;
    entry["shape"] = tensor.shape;
    entry["n_bytes"] = tensor.n_bytes;
    tensors.push_back(std::move(entry));
  }
  Json object;
  object["path"] = path;
  object["format"] = summary.format;
  object["n_tensors"] = summary.tensors.size();
  object["n_parameters"] = totals.n_parameters;
  object["n_bytes"] = totals.n_bytes;
  Json facts = Json::object();
  for (const auto& [name, value] : summary.facts) facts[name] = value;
  object["facts"] = std::move(facts);
  object["metadata"] = std::move(metadata);
  object["tensors"] = std::move(tensors);
  if (!summary.warnings.empty()) object["warnings"] = summary.warnings;
  return dump(object);
}

std::string to_table(const std::string& path, const FileSummary& summary) {
  const Totals totals = add_up(summary);
  std::string text = fmt::format("{}: {}, {} tensors, {} parameters, {}\n", one_line(path),
                                 summary.format, summary.tensors.size(),
                                 show_count(totals.n_parameters), show_bytes(totals.n_bytes));
  const auto out = std::back_inserter(text);
  std::size_t fact_width = 0;
  for (const auto& [name, value] : summary.facts) fact_width = std::max(fact_width, name.size());
  for (const auto& [name, value] : summary.facts) {
    fmt::format_to(out, "  {:<{}}  {}\n", name, fact_width, one_line(value));
  }
  if (!summary.warnings.empty()) text += "\nWarnings\n";
  for (const std::string& warning : summary.warnings) {
    fmt::format_to(out, "  {}\n", one_line(warning));
  }
  std::size_t key_width = 0;
  for (const auto& [key, value] : summary.metadata) key_width = std::max(key_width, key.size());
  if (!summary.metadata.empty()) text += "\nMetadata\n";
  for (const auto& [key, value] : summary.metadata) {
    fmt::format_to(out, "  {:<{}}  {}\n", one_line(key), key_width, one_line(value));
  }
  std::size_t name_width = 4;
  std::size_t shape_width = 5;
  for (const TensorSummary& tensor : summary.tensors) {
    name_width = std::max(name_width, tensor.name.size());
    shape_width = std::max(shape_width, show_shape(tensor).size());
  }
  if (!summary.tensors.empty()) {
    fmt::format_to(out, "\nTensors\n  {:<{}}  {:<5}  {:>{}}  {:>12}\n", "name", name_width, "type",
                   "shape", shape_width, "size");
  }
  for (const TensorSummary& tensor : summary.tensors) {
    fmt::format_to(out, "  {:<{}}  {:<5}  {:>{}}  {:>12}\n", one_line(tensor.name), name_width,
                   tensor.type, show_shape(tensor), shape_width, show_bytes(tensor.n_bytes));
  }
  return text;
}

std::string show_kernels(bool json) {
  if (json) {
    Json list = Json::array();
    for (const auto& [name, runs] : kernel_tables()) {
      list.push_back({{"name", name}, {"runs_here", runs}});
    }
    return dump(list);
  }
  std::string text;
  for (const auto& [name, runs] : kernel_tables()) {
    fmt::format_to(std::back_inserter(text), "{:<12}  {}\n", name,
                   runs ? "runs here" : "not on this machine");
  }
  return text;
}

std::string show_pair(const InspectFlags& flags) {
  const VocabularyPair pair = inspect_pair(flags.pair[0], flags.pair[1]);
  if (flags.json) {
    return dump({{"target_tokens", pair.n_target},
                 {"drafter_tokens", pair.n_drafter},
                 {"shared_tokens", pair.n_shared},
                 {"same_ids", pair.same_ids}});
  }
  const auto share = [&](int n) { return n > 0 ? 100.0 * pair.n_shared / n : 0.0; };
  std::string text = fmt::format(
      "{}: {} tokens\n{}: {} tokens\nshared: {} tokens, {:.1f} % of the target's, {:.1f} % of the "
      "drafter's\n",
      one_line(flags.pair[0]), pair.n_target, one_line(flags.pair[1]), pair.n_drafter,
      pair.n_shared, share(pair.n_target), share(pair.n_drafter));
  if (pair.same_ids) {
    text += "one vocabulary: --draft takes the second as it is\n";
  } else if (pair.n_shared > 0) {
    text += fmt::format(
        "two vocabularies: --drafter model:{},vocabulary=shared drafts what both "
        "have\n",
        one_line(flags.pair[1]));
  } else {
    text += "two vocabularies, and nothing in common\n";
  }
  return text;
}

int run(const InspectFlags& flags) {
  Output output;
  if (!flags.pair.empty()) {
    output.write(show_pair(flags));
  } else if (flags.kernels) {
    output.write(show_kernels(flags.json));
  } else {
    const FileSummary summary = inspect_file(flags.model);
    output.write(flags.json ? to_json(flags.model, summary) : to_table(flags.model, summary));
  }
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_inspect(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("inspect", "Show what a model's files hold")->group("Commands");
  const auto flags = std::make_shared<InspectFlags>();
  constexpr const char* kWhat = "What (one of the three)";
  CLI::Option* model = add_path(*app, "-m,--model,PATH", flags->model, "PATH",
                                "A Hugging Face directory or a .gguf file, of which only headers "
                                "are read; PATH may stand by itself")
                           ->group(kWhat);
  CLI::Option* kernels =
      app->add_flag("--kernels", flags->kernels,
                    "The kernel tables of this program, and which of them this machine runs")
          ->group(kWhat)
          ->excludes(model);
  CLI::Option* pair =
      add_filled_texts(*app, "--pair", flags->pair, "TARGET DRAFTER", "two paths",
                       "How much vocabulary a target and a drafter of another one share")
          ->expected(2)
          ->group(kWhat)
          ->excludes(model)
          ->excludes(kernels);
  app->add_flag("--json", flags->json, "As JSON")->group("Form");
  app->footer(
      "Examples:\n"
      "  outrider inspect SmolLM2-135M-Instruct\n"
      "  outrider inspect model.gguf --json\n"
      "  outrider inspect --pair Llama-3.1-8B SmolLM2-135M\n"
      "  outrider inspect --kernels\n");
  run_command = [flags, model, kernels, pair] {
    if (model->count() + kernels->count() + pair->count() == 0) {
      throw UsageError("read flags", "what", "PATH, --pair TARGET DRAFTER or --kernels",
                       "none of them");
    }
    return run(*flags);
  };
  return app;
}

}  // namespace outrider::cli
