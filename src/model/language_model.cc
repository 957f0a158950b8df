// SPDX-License-Identifier: Apache-2.0
#include "model/language_model.h"

#include <fmt/format.h>

#include "outrider/error.h"

namespace outrider {

void Sequence::truncate(int n_tokens) {
  const int n_left = rewind(n_tokens);
  if (n_left != n_tokens) {
    throw Error("truncate", "sequence", fmt::format("{} tokens left", n_tokens),
                fmt::format("{}: the state behind {} is gone", n_left, n_tokens));
  }
}

std::unique_ptr<Sequence> LanguageModel::fork_without(const Sequence&, std::span<const int>) const {
  return nullptr;
}

void LanguageModel::save(const Sequence&, const ByteSink&) const {
  throw Error("save sequence", "model", "one that gives its keys and values", "one that does not");
}

std::unique_ptr<Sequence> LanguageModel::restore(int, const ByteSource&) {
  throw Error("load sequence", "model", "one that takes keys and values", "one that does not");
}

void LanguageModel::embed(std::span<const TokenId>, std::span<float>) {
  throw Error("embed", "model", "one that lends its input matrix", "one that does not");
}

void LanguageModel::project(std::span<const float>, ForwardOutput&) {
  throw Error("project", "model", "one that lends its output matrix", "one that does not");
}

std::optional<Matrix> LanguageModel::narrower_output(WeightKind) const { return std::nullopt; }

}  // namespace outrider
