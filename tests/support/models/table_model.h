// SPDX-License-Identifier: Apache-2.0
// A language model whose logits are an arbitrary function of the whole prefix, computed from a
// seed: random rows with zero probabilities (logits of minus infinity) and ties.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_TABLE_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_TABLE_MODEL_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "outrider/error.h"

namespace outrider::test {

class TableSequence final : public Sequence {
 public:
  int n_kept() const override { return static_cast<int>(kept_.size()); }
  int n_pending() const override { return static_cast<int>(pending_.size()); }
  void keep(std::span<const int> path) override {
    for (const int node : path) kept_.push_back(pending_[static_cast<std::size_t>(node)].token);
    pending_.clear();
  }
  int rewind(int n_tokens) override {
    pending_.clear();
    kept_.resize(static_cast<std::size_t>(n_tokens));
    return n_tokens;
  }
  std::unique_ptr<Sequence> fork() const override {
    auto copy = std::make_unique<TableSequence>();
    copy->kept_ = kept_;
    return copy;
  }

  // Appends a node after `parent` (-1: the last kept token); returns its whole prefix.
  std::vector<TokenId> append(TokenId token, int parent) {
    pending_.push_back({token, parent});
    std::vector<TokenId> path;
    for (int node = n_pending() - 1; node >= 0;
         node = pending_[static_cast<std::size_t>(node)].parent) {
      path.push_back(pending_[static_cast<std::size_t>(node)].token);
    }
    std::vector<TokenId> prefix = kept_;
    prefix.insert(prefix.end(), path.rbegin(), path.rend());
    return prefix;
  }

 private:
  struct Pending {
    TokenId token;
    int parent;
  };
  std::vector<TokenId> kept_;
  std::vector<Pending> pending_;
};

// A model that also returns the logits after a prefix, outside any sequence, for comparisons in
// proofs.
class PrefixModel : public LanguageModel {
 public:
  virtual const std::vector<float>& logits(const std::vector<TokenId>& prefix) = 0;
};

class TableModel final : public PrefixModel {
 public:
  TableModel(int vocabulary_size, std::uint32_t seed, int context_length = 1 << 20) : seed_(seed) {
    config_.architecture = "table";
    config_.vocabulary_size = vocabulary_size;
    config_.context_length = context_length;
  }

  const ModelConfig& config() const override { return config_; }
  Footprint footprint() const override { return {}; }
  std::unique_ptr<Sequence> open(const Prompt&) override {
    return std::make_unique<TableSequence>();
  }

  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    std::vector<const std::vector<float>*> asked;
    int row_of_pass = -1;
    const auto is_listed = [&] {
      const std::span<const int> rows = request.logits.rows;
      return std::find(rows.begin(), rows.end(), row_of_pass) != rows.end();
    };
    for (const TokenBlock& block : blocks) {
      auto& sequence = static_cast<TableSequence&>(*block.sequence);
      for (std::size_t index = 0; index < block.tokens.size(); ++index) {
        if (block.tokens[index] < 0 || block.tokens[index] >= config_.vocabulary_size) {
          throw Error("forward", "table model", "tokens of its vocabulary", "another");
        }
        const int parent = block.parents.empty() ? sequence.n_pending() - 1 : block.parents[index];
        const std::vector<TokenId> prefix = sequence.append(block.tokens[index], parent);
        if (static_cast<int>(prefix.size()) > config_.context_length) {
          throw Error("forward", "table model", "positions of its context", "one beyond");
        }
        const bool last = index + 1 == block.tokens.size();
        ++row_of_pass;
        if (request.logits.kind == RowSet::Kind::none ||
            (request.logits.kind == RowSet::Kind::listed && !is_listed()) ||
            (request.logits.kind == RowSet::Kind::last_of_each_block && !last)) {
          continue;
        }
        asked.push_back(&logits(prefix));
      }
    }
    float* to = output.logits.start_pass(static_cast<int>(asked.size()), config_.vocabulary_size);
    for (const std::vector<float>* row : asked) to = std::copy(row->begin(), row->end(), to);
  }

  const std::vector<float>& logits(const std::vector<TokenId>& prefix) override {
    auto [at, is_new] = table_.try_emplace(prefix);
    if (is_new) at->second = make_row(prefix);
    return at->second;
  }

 private:
  // About one entry in five is impossible; one row in three has two equal entries.
  std::vector<float> make_row(const std::vector<TokenId>& prefix) const {
    std::vector<std::uint32_t> key(prefix.begin(), prefix.end());
    key.push_back(seed_);
    std::seed_seq sequence(key.begin(), key.end());
    std::mt19937 random(sequence);
    std::vector<float> row(static_cast<std::size_t>(config_.vocabulary_size));
    std::normal_distribution<float> normal(0, 1.5F);
    for (float& logit : row) {
      logit = random() % 5 == 0 ? -std::numeric_limits<float>::infinity() : normal(random);
    }
    if (random() % 3 == 0) row[1] = row[0];
    const std::size_t possible = random() % row.size();
    if (row[possible] < -1e30F) row[possible] = 0.25F;
    return row;
  }

  ModelConfig config_;
  std::uint32_t seed_;
  std::map<std::vector<TokenId>, std::vector<float>> table_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_TABLE_MODEL_H_
