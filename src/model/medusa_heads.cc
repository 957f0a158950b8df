#include "model/medusa_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "io/safetensors.h"
#include "model/decoder_layers.h"
#include "model/thread_share.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {

MedusaHeads::MedusaHeads(Parts parts)
    : parts_(std::move(parts)), ones_(static_cast<std::size_t>(dim()), 1.0F) {}

void MedusaHeads::forward(int head, std::span<const float> features, ForwardOutput& output) {
  const Head& its = parts_.heads[static_cast<std::size_t>(head)];
  const KernelTable& table = *parts_.table;
  const auto width = static_cast<std::size_t>(dim());
  const auto n_rows = static_cast<int>(features.size() / width);
  const bool own_output = its.output.n_columns() > 0;
  const int n_tokens = parts_.target->config().vocabulary_size;
  given_.assign(features.begin(), features.end());
  change_.resize(features.size());
  x_.resize(n_rows, dim(), parts_.input_forms);
  if (own_output) {
    const std::size_t n_logits =
        static_cast<std::size_t>(n_rows) * static_cast<std::size_t>(n_tokens);
    if (output.logits.size() < n_logits) output.logits.resize(n_logits);
    output.n_rows = n_rows;
    output.vocabulary_size = n_tokens;
    output.feature_width = 0;
  }
  if (n_rows == 0) return;
  std::int64_t n_bytes = static_cast<std::int64_t>(its.output.packed_bytes());
  std::int64_t n_products = std::int64_t{its.output.n_columns()} * dim();
  for (const Linear& block : its.blocks) {
    n_bytes += static_cast<std::int64_t>(block.matrix.packed_bytes());
    n_products += std::int64_t{dim()} * dim();
  }
  const int n_threads = threads_for(n_bytes, n_products * n_rows, kLeastShare_ns, parts_.n_threads);
  run_team(n_threads, [&](const Team& team) {
    const Range mine = team.share(n_rows);
    const auto take_rows = [&] {
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        std::copy_n(row_of(given_, i, dim()), width, x_.row(static_cast<int>(i)));
        x_.finish_row(table, static_cast<int>(i));
      }
      team.barrier();
    };
    for (const Linear& block : its.blocks) {
      take_rows();
      block.matrix.multiply(team, x_, change_.data(), width);
      team.barrier();
      for (std::int64_t i = mine.begin; i < mine.end; ++i) {
        float* change = row_of(change_, i, dim());
        add_bias(table, change, block.bias);
        table.silu_multiply(change, ones_.data(), dim(), change);
        table.add(row_of(given_, i, dim()), change, dim());
      }
    }
    if (!own_output) return;
    take_rows();
    its.output.multiply(team, x_, output.logits.data(), static_cast<std::size_t>(n_tokens));
  });
  if (!own_output) parts_.output->project(given_, output);
}

bool holds_medusa_heads_alone(const std::filesystem::path& path) {
  const auto holds = [&path](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(path / name, ignored);
  };
  return holds(kMedusaFile) && !holds("model.safetensors") &&
         !holds("model.safetensors.index.json");
}

std::unique_ptr<MedusaHeads> load_medusa_heads(const std::filesystem::path& path,
                                               LanguageModel& target, const LoadOptions& options) {
  constexpr const char* kOperation = "load Medusa heads";
  const WeightOptions weight_options = make_weight_options(options);
  if (!std::filesystem::exists(path / kMedusaFile)) {
    throw Error(kOperation, path.string(), fmt::format("a directory with {}", kMedusaFile),
                std::filesystem::exists(path) ? "none" : "nothing there");
  }
  const auto source = open_safetensors(path / kMedusaFile);
  const int dim = target.config().dim;
  WeightLoader loader(*source, weight_options);
  MedusaHeads::Parts parts;
  parts.heads = loader.run([&](WeightLoader& walk) {
    std::vector<MedusaHeads::Head> heads;
    // The first head is read in any case: without it, its absence is the error.
    for (int k = 0; k == 0 || walk.has(fmt::format("{}.0.linear.weight", k)); ++k) {
      MedusaHeads::Head head;
      int j = 0;
      do {
        head.blocks.push_back(
            walk.linear(fmt::format("{}.{}.linear", k, j), dim, dim, Bias::if_stored));
      } while (walk.has(fmt::format("{}.{}.linear.weight", k, ++j)));
      const std::string output = fmt::format("{}.{}", k, j);
      if (walk.has(output + ".weight")) {
        head.output = walk.linear(output, target.config().vocabulary_size, dim, Bias::never).matrix;
      }
      heads.push_back(std::move(head));
    }
    return heads;
  });
  parts.target = &target;
  const auto has_none = [](const MedusaHeads::Head& head) { return head.output.n_columns() == 0; };
  if (std::any_of(parts.heads.begin(), parts.heads.end(), has_none)) {
    parts.output.emplace(target, weight_options);
  }
  parts.table = weight_options.table;
  parts.n_threads = weight_options.n_threads;
  parts.input_forms = loader.input_forms();
  return std::make_unique<MedusaHeads>(std::move(parts));
}

}  // namespace outrider
