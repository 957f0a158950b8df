// SPDX-License-Identifier: Apache-2.0
// outrider bench --methods: times decoding methods in turn, beside plain decoding.
#ifndef OUTRIDER_APPS_BENCH_BENCH_METHODS_H_
#define OUTRIDER_APPS_BENCH_BENCH_METHODS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/flags/model_flags.h"
#include "outrider/compare_methods.h"

namespace outrider::cli {

struct MethodsFlags {
  CLI::Option* chosen = nullptr;
  std::vector<std::string> lists;
  std::vector<std::string> prompt_files;
  std::vector<double> temperatures = {0};
  int limit = 0;  // 0: all
  bool raw = false;
  std::string csv_file;
  std::string html_file;
};

// --methods, and the flags that need it.
void add_methods_flags(CLI::App& app, MethodsFlags& flags);

// Values of flags that other measurements also have.
struct MethodsRun {
  int max_tokens = 0;
  int repeats = 1;
  std::uint64_t seed = 0;
  bool json = false;
  std::string json_file;  // empty: standard output
};
int run_methods(const ModelFlags& model_flags, const MethodsFlags& flags, const MethodsRun& run);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_METHODS_H_
