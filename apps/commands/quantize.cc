// SPDX-License-Identifier: Apache-2.0
// outrider quantize: a GGUF file with weights in fewer bits.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <string>

#include "apps/cli/flag_values.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/commands.h"
#include "apps/load_progress.h"
#include "outrider/error.h"
#include "outrider/quantise.h"

namespace outrider::cli {
namespace {

struct QuantizeFlags {
  std::string model;
  std::string out;
  QuantiseOptions options;
};

std::string show_quantised(const QuantizeFlags& flags, const QuantiseSummary& summary) {
  constexpr double kMegabyte = 1e6;
  std::int64_t n_elements = 0;
  for (const QuantisedShare& share : summary.shares) n_elements += share.n_elements;
  const double bits =
      n_elements == 0 ? 0
                      : 8 * static_cast<double>(summary.n_bytes) / static_cast<double>(n_elements);
  std::string text =
      fmt::format("{}: {}, {:.1f} MB of {:.1f} MB, {:.2f} bits a weight\n", one_line(flags.out),
                  flags.options.type, static_cast<double>(summary.n_bytes) / kMegabyte,
                  static_cast<double>(summary.n_bytes_read) / kMegabyte, bits);
  for (const QuantisedShare& share : summary.shares) {
    fmt::format_to(std::back_inserter(text), "  {:<6} {:>12}  {:>9.1f} MB\n", share.type,
                   counted(share.n_tensors, "tensor"),
                   static_cast<double>(share.n_bytes) / kMegabyte);
  }
  return text;
}

int run_quantize(const QuantizeFlags& flags) {
  const Interrupt interrupt;
  QuantiseSummary summary;
  {
    LoadProgress progress("quantizing", interrupt);
    QuantiseOptions options = flags.options;
    options.progress = [&progress](double share_done) { progress.show(share_done); };
    summary = quantise_file(flags.model, flags.out, options);
  }
  print_warnings(summary.warnings);
  Output output;
  output.write(show_quantised(flags, summary));
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_quantize(CLI::App& program, Run& run_command) {
  CLI::App* app =
      program.add_subcommand("quantize", "Write a .gguf file again with its weights in fewer bits")
          ->group("Commands");
  const auto flags = std::make_shared<QuantizeFlags>();
  constexpr const char* kFiles = "Files";
  CLI::Option* model =
      add_path(
          *app, "-m,--model,MODEL", flags->model, "PATH",
          "A .gguf file with weights in f32, f16 or bf16; MODEL may stand by itself (required)")
          ->group(kFiles);
  CLI::Option* out = add_path(*app, "--out,OUT", flags->out, "FILE",
                              "Where to; it appears when all is written; OUT may stand by itself, "
                              "behind MODEL (required)")
                         ->group(kFiles);
  app->add_flag("--force", flags->options.replace,
                "Replace a file that is there (default: refuse to)")
      ->group(kFiles);

  constexpr const char* kWeights = "Weights";
  add_choice(*app, "--type", flags->options.type, quantised_file_types(),
             "q8_0, q6_k and q4_0 are 8.5, 6.6 and 4.5 bits a weight; q4_k_m mixes 4.5 and 6.6. "
             "Vectors stay as they are, and so do some small matrices (default: q4_k_m)")
      ->group(kWeights);
  app->add_flag("--requantize", flags->options.requantise,
                "Take weights that are quantised in another type, too: their errors and the new "
                "ones add up (default: refuse to)")
      ->group(kWeights);
  add_integer(*app, "--threads", flags->options.threads, 0,
              "Threads; 0 takes every processor (default: 0)")
      ->group("Work");
  app->footer(
      "All metadata is copied. llama.cpp reads the file as well. The same model and type give the\n"
      "same bytes on every machine. Of a split model, MODEL is the first part.\n\n"
      "Examples:\n"
      "  outrider quantize SmolLM2-1.7B-F16.gguf SmolLM2-1.7B-Q4_K_M.gguf\n"
      "  outrider quantize model-f16.gguf model-q8_0.gguf --type q8_0 --force\n"
      "  outrider eval --perplexity --model model-q8_0.gguf --text notes.txt\n");
  run_command = [flags, model, out] {
    if (model->count() == 0) throw UsageError("read flags", "MODEL", "a .gguf file", "none");
    if (out->count() == 0) throw UsageError("read flags", "OUT", "a place for a file", "none");
    return run_quantize(*flags);
  };
  return app;
}

}  // namespace outrider::cli
