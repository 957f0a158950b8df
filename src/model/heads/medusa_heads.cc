// SPDX-License-Identifier: Apache-2.0
#include "model/heads/medusa_heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/files/hub_cache.h"
#include "io/safetensors/safetensors.h"
#include "model/pass/pass_builder.h"
#include "outrider/error.h"

namespace outrider {

MedusaHeads::MedusaHeads(Parts parts) : parts_(std::move(parts)) {
  for (const Head& head : parts_.heads) {
    PassBuilder pass(dim());
    for (const Linear& block : head.blocks) {
      const op::Normalise::Part read = {pass.stream(), nullptr};
      pass.add(pass.activated(pass.join({&read, 1}), block, Activation::silu));
    }
    if (head.output.n_columns() > 0) pass.logits(pass.stream(), nullptr, head.output);
    HeadPass built{.rows = pass.stream(), .pass = nullptr};
    built.pass = std::make_unique<CpuPass>(pass.take(), parts_.machine);
    passes_.push_back(std::move(built));
  }
}

void MedusaHeads::forward(int head, std::span<const float> features, ForwardOutput& output) {
  const Head& its = parts_.heads[static_cast<std::size_t>(head)];
  const HeadPass& built = passes_[static_cast<std::size_t>(head)];
  const auto n_rows = static_cast<int>(features.size()) / dim();
  const int n_tokens = parts_.target->config().vocabulary_size;
  const bool own_output = its.output.n_columns() > 0;
  built.pass->prepare_rows(n_rows);
  float* logits = nullptr;
  if (own_output) {
    logits = output.logits.start_pass(n_rows, n_tokens);
    output.feature_width = 0;
  }
  if (n_rows > 0) {
    std::copy(features.begin(), features.end(), built.pass->row(built.rows, 0));
    built.pass->run({.logits = logits});
  }
  if (own_output) return;
  const std::size_t n_floats = n_rows > 0 ? features.size() : 0;
  parts_.output->project({n_floats > 0 ? built.pass->row(built.rows, 0) : nullptr, n_floats},
                         output);
}

bool holds_medusa_heads_alone(const std::filesystem::path& path) {
  const auto holds = [&path](const char* name) {
    std::error_code ignored;
    return std::filesystem::exists(path / name, ignored);
  };
  return holds(kMedusaFile) && !holds("model.safetensors") &&
         !holds("model.safetensors.index.json");
}

std::unique_ptr<MedusaHeads> load_medusa_heads(const std::filesystem::path& given,
                                               LanguageModel& target, const LoadOptions& options) {
  constexpr const char* kOperation = "load Medusa heads";
  const std::filesystem::path path = without_hub_cache(given);
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
    // The first head is always read: if it is missing, that is the error.
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
  parts.machine = {.table = weight_options.table, .n_threads = weight_options.n_threads};
  return std::make_unique<MedusaHeads>(std::move(parts));
}

}  // namespace outrider
