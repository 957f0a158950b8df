// SPDX-License-Identifier: Apache-2.0
// For tests of bit identity: a tiny model on a given table, and tokens without a pattern.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_IDENTITY_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_IDENTITY_MODEL_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "kernels/table.h"
#include "model/decoder_model.h"
#include "model/language_model.h"
#include "model/load_model.h"

namespace outrider::test {

// Loads on exactly n_threads threads, however small the model is.
inline std::unique_ptr<LanguageModel> load_on(const std::filesystem::path& path,
                                              const kernels::KernelTable& table, WeightKind weights,
                                              kernels::KvKind kv, int n_threads) {
  LoadOptions options;
  options.table = &table;
  options.weights = weights;
  options.kv = kv;
  options.n_threads = n_threads;
  auto model = load_model(path, options);
  dynamic_cast<DecoderModel&>(*model).set_min_share_ns(0);
  return model;
}

// n tokens below vocabulary_size; they differ for every start.
inline std::vector<TokenId> tokens_without_pattern(std::size_t n, unsigned start,
                                                   unsigned vocabulary_size) {
  std::vector<TokenId> tokens(n);
  unsigned state = start;
  for (TokenId& token : tokens) {
    state = state * 1664525u + 1013904223u;
    token = static_cast<TokenId>((state >> 8) % vocabulary_size);
  }
  return tokens;
}

inline std::span<const TokenId> part(const std::vector<TokenId>& tokens, std::size_t first,
                                     std::size_t n) {
  return std::span(tokens).subspan(first, n);
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_IDENTITY_MODEL_H_
