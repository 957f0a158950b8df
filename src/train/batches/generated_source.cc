// SPDX-License-Identifier: Apache-2.0
#include "train/batches/generated_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider::train {

GeneratedSource::GeneratedSource(std::shared_ptr<BatchSource> prefixes,
                                 std::shared_ptr<Teacher> target, const GenerationOptions& options)
    : prefixes_(std::move(prefixes)), target_(std::move(target)), options_(options) {
  const int length = prefixes_->batch(0).length;
  if (options.n_prefix < 1 || options.n_prefix >= length) {
    throw Error("generate text", "prefix", fmt::format("1 to {} tokens", length - 1),
                fmt::format("{}", options.n_prefix));
  }
}

TokenId GeneratedSource::choose(std::span<const float> logits, std::uint64_t draw) const {
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equals
  if (options_.temperature <= 0) return static_cast<TokenId>(best - logits.begin());
  const auto weight = [&](float logit) {
    return std::exp((double{logit} - double{*best}) / options_.temperature);
  };
  double sum = 0;
  for (const float logit : logits) sum += weight(logit);
  double left = static_cast<double>(draw >> 11) * 0x1p-53 * sum;  // 53 bits: uniform in [0, 1)
  for (std::size_t i = 0; i < logits.size(); ++i) {
    left -= weight(logits[i]);
    if (left < 0) return static_cast<TokenId>(i);
  }
  return static_cast<TokenId>(best - logits.begin());  // rounding has used up the end of the sum
}

Batch GeneratedSource::batch(std::int64_t number) {
  Batch batch = prefixes_->batch(number);
  LanguageModel& model = target_->model();
  const std::vector<TokenId>& ends = model.config().end_tokens;
  struct Writing {
    std::unique_ptr<Sequence> sequence;
    std::size_t begin;  // of its tokens in the batch
  };
  std::vector<Writing> open;
  for (int i = 0; i < batch.n_sequences; ++i) {
    const std::size_t begin = static_cast<std::size_t>(i) * batch.length;
    open.push_back({model.open({.n_tokens = static_cast<int>(batch.length)}), begin});
    std::fill_n(batch.weights.begin() + static_cast<std::ptrdiff_t>(begin), batch.length, 0.0F);
  }
  const std::uint64_t seed = mix(options_.seed, static_cast<std::uint64_t>(number), 2);
  const RowSet last{.kind = RowSet::Kind::last_of_each_block, .rows = {}};
  std::vector<int> path(static_cast<std::size_t>(options_.n_prefix));
  std::iota(path.begin(), path.end(), 0);
  int n_new = options_.n_prefix;  // tokens that each sequence has not read yet, up to `place`
  for (int place = options_.n_prefix; place < batch.length && !open.empty(); ++place) {
    std::vector<TokenBlock> blocks;
    for (const Writing& writing : open) {
      const TokenId* first = batch.tokens.data() + writing.begin + place - n_new;
      blocks.push_back({.sequence = writing.sequence.get(),
                        .tokens = {first, static_cast<std::size_t>(n_new)},
                        .parents = {}});
    }
    model.forward(blocks, {.logits = last, .feature_layers = {}}, output_);
    std::vector<Writing> going_on;
    for (std::size_t i = 0; i < open.size(); ++i) {
      open[i].sequence->keep(std::span(path).first(static_cast<std::size_t>(n_new)));
      const std::size_t at = open[i].begin + static_cast<std::size_t>(place);
      const TokenId token = choose(output_.logits_row(static_cast<int>(i)), mix(seed, at));
      batch.tokens[at] = token;
      batch.weights[at] = 1;
      if (std::find(ends.begin(), ends.end(), token) == ends.end()) {
        going_on.push_back(std::move(open[i]));
      } else {
        const std::size_t end = open[i].begin + static_cast<std::size_t>(batch.length);
        std::fill(batch.tokens.begin() + static_cast<std::ptrdiff_t>(at),
                  batch.tokens.begin() + static_cast<std::ptrdiff_t>(end), token);
      }
    }
    open = std::move(going_on);
    n_new = 1;
  }
  return batch;
}

}  // namespace outrider::train
