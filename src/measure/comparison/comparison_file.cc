// SPDX-License-Identifier: Apache-2.0
// The file from which a comparison continues.
#include <algorithm>
#include <utility>

#include "base/files/run_file.h"
#include "measure/comparison/comparison_json.h"
#include "outrider/error.h"
#include "outrider/method_report.h"

namespace outrider {
namespace {

constexpr const char* kFormat = "outrider-bench-methods";

// Reads a line after the head: {"passes": ...} or {"round": ...}. Throws Error.
void read_line(std::string_view line, std::string_view place, MethodComparison& comparison) {
  const auto fail = [&] {
    std::string got(line.substr(0, 60));
    throw Error("read records", place, "a round or passes of a comparison",
                got.empty() ? "an empty line" : got);
  };
  try {
    const OrderedJson value = OrderedJson::parse(line);
    if (value.contains("passes")) {
      PassCosts passes = read_passes(value.at("passes"));
      if (passes.passes.empty()) fail();
      comparison.passes = std::move(passes);
      comparison.pass_context = value.at("passes").at("context").get<int>();
      return;
    }
    ComparedRound round = read_round(value.at("round"));
    const CompareOptions& options = comparison.options;
    const bool fits = round.prompt < options.prompts.size() &&
                      (round.problem.empty() ? round.samples.size() == options.methods.size()
                                             : round.samples.empty());
    if (!fits) fail();
    comparison.rounds.push_back(std::move(round));
  } catch (const OrderedJson::exception&) {
    fail();
  }
}

}  // namespace

struct ComparisonFile::State {
  State(const std::filesystem::path& path, MethodComparison& comparison)
      : file(path, kFormat, settings_json(comparison),
             [&comparison](std::string_view line, std::string_view place) {
               read_line(line, place, comparison);
             }) {}
  RunFile file;
};

ComparisonFile::ComparisonFile(const std::filesystem::path& path, MethodComparison& comparison)
    : state_(std::make_unique<State>(path, comparison)) {}
ComparisonFile::~ComparisonFile() = default;

void ComparisonFile::append(const ComparedRound& round) {
  state_->file.append(json_text({{"round", round_json(round)}}));
}

void ComparisonFile::append_passes(const PassCosts& passes, int context) {
  state_->file.append(json_text({{"passes", passes_json(passes, context)}}));
}

}  // namespace outrider
