// SPDX-License-Identifier: Apache-2.0
#include "model/shared_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <utility>

#include "model/pass/pass_builder.h"
#include "outrider/error.h"

namespace outrider {
namespace {

PassList list_of(const Matrix& head, const LogitForm& form, const std::vector<int>& parts,
                 Rows& read) {
  PassBuilder pass(head.k());
  read = pass.stream();
  pass.logits(read, nullptr, head, form, parts);
  return pass.take();
}

}  // namespace

Projection::Projection(const Matrix& head, const LogitForm& form, const CpuPass::Machine& machine,
                       const std::vector<int>& parts)
    : head_(&head),
      n_columns_(parts.empty() ? head.n_columns() : std::accumulate(parts.begin(), parts.end(), 0)),
      pass_(list_of(head, form, parts, read_), machine) {}

// Returns the number of rows.
int Projection::prepare(std::span<const float> features) {
  const auto dim = static_cast<std::size_t>(head_->k());
  if (features.size() % dim != 0) {
    throw Error("project", "features", fmt::format("a multiple of {} floats", dim),
                fmt::format("{}", features.size()));
  }
  const auto n_rows = static_cast<int>(features.size() / dim);
  pass_.prepare_rows(n_rows);
  if (n_rows > 0) std::copy(features.begin(), features.end(), pass_.row(read_, 0));
  return n_rows;
}

float* Projection::prepare(std::span<const float> features, ForwardOutput& output) {
  const int n_rows = prepare(features);
  float* const logits = output.logits.start_pass(n_rows, n_columns_);
  output.feature_width = 0;
  return logits;
}

void Projection::project(std::span<const float> features, ForwardOutput& output) {
  float* const logits = prepare(features, output);
  if (!features.empty()) run(logits);
}

void Projection::project_part(std::span<const float> features) {
  if (prepare(features) > 0) pass_.run({});
}

SharedOutput::SharedOutput(LanguageModel& target, const WeightOptions& options) : target_(&target) {
  if (!options.kind) return;
  std::optional<Matrix> copy = target.narrower_output(*options.kind);
  if (!copy) return;
  copy_ = std::make_unique<const Matrix>(std::move(*copy));
  projection_ = std::make_unique<Projection>(
      *copy_, target.logit_form(),
      CpuPass::Machine{.table = options.table, .n_threads = options.n_threads});
}

void SharedOutput::project(std::span<const float> features, ForwardOutput& output) {
  projection_ != nullptr ? projection_->project(features, output)
                         : target_->project(features, output);
}

}  // namespace outrider
