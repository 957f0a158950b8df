#include "model/shared_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "model/thread_share.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {

void project_features(const Matrix& head, const KernelTable& table, int n_threads,
                      std::span<const float> features, Activations& room, ForwardOutput& output) {
  const auto dim = static_cast<std::size_t>(head.k());
  if (features.size() % dim != 0) {
    throw Error("project", "features", fmt::format("a multiple of {} floats", dim),
                fmt::format("{}", features.size()));
  }
  const auto n_rows = static_cast<int>(features.size() / dim);
  const auto n_tokens = static_cast<std::size_t>(head.n_columns());
  room.resize(n_rows, head.k(), InputForms::of(head.kind(), table));
  const std::size_t n_logits = static_cast<std::size_t>(n_rows) * n_tokens;
  if (output.logits.size() < n_logits) output.logits.resize(n_logits);
  output.n_rows = n_rows;
  output.vocabulary_size = head.n_columns();
  output.feature_width = 0;
  if (n_rows == 0) return;
  run_team(n_threads, [&](const Team& team) {
    const Range mine = team.share(n_rows);
    for (std::int64_t i = mine.begin; i < mine.end; ++i) {
      std::copy_n(features.data() + static_cast<std::size_t>(i) * dim, dim,
                  room.row(static_cast<int>(i)));
      room.finish_row(table, static_cast<int>(i));
    }
    team.barrier();
    head.multiply(team, room, output.logits.data(), n_tokens);
  });
}

SharedOutput::SharedOutput(LanguageModel& target, const WeightOptions& options)
    : target_(&target), table_(options.table), n_threads_(options.n_threads) {
  if (options.kind) copy_ = target.narrower_output(*options.kind);
}

void SharedOutput::project(std::span<const float> features, ForwardOutput& output) {
  if (!copy_) {
    target_->project(features, output);
    return;
  }
  const auto n_bytes = static_cast<std::int64_t>(copy_->packed_bytes());
  const std::int64_t n_products = static_cast<std::int64_t>(features.size()) * copy_->n_columns();
  const int n_threads = threads_for(n_bytes, n_products, kLeastShare_ns, n_threads_);
  project_features(*copy_, *table_, n_threads, features, rows_, output);
}

}  // namespace outrider
