// SPDX-License-Identifier: Apache-2.0
// Wrappers of models that drafters read through masks: one forwards everything, the others each
// contain one error.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_MASKED_MUTANTS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_MASKED_MUTANTS_H_

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "model/heads/feature_head.h"
#include "model/language_model.h"

namespace outrider::test {

// A sequence that forwards everything.
class PassedSequence : public Sequence {
 public:
  explicit PassedSequence(std::unique_ptr<Sequence> inner) : inner_(std::move(inner)) {}
  int n_kept() const override { return inner_->n_kept(); }
  int n_pending() const override { return inner_->n_pending(); }
  void keep(std::span<const int> path) override { inner_->keep(path); }
  int rewind(int n_tokens) override { return inner_->rewind(n_tokens); }
  std::unique_ptr<Sequence> fork() const override {
    return std::make_unique<PassedSequence>(inner_->fork());
  }
  Sequence& inner() const { return *inner_; }

 private:
  std::unique_ptr<Sequence> inner_;
};

// The same for a model. Model: LanguageModel or FeatureHead.
template <class Model>
class PassedModel : public Model {
 public:
  explicit PassedModel(std::unique_ptr<Model> inner) : inner_(std::move(inner)) {}
  const ModelConfig& config() const override { return inner_->config(); }
  Footprint footprint() const override { return inner_->footprint(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override {
    return std::make_unique<PassedSequence>(inner_->open(prompt));
  }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    std::vector<TokenBlock> passed(blocks.begin(), blocks.end());
    for (TokenBlock& block : passed) {
      block.sequence = &static_cast<PassedSequence*>(block.sequence)->inner();
    }
    inner_->forward(passed, request, output);
  }

 protected:
  std::unique_ptr<Model> inner_;
};

using PassedLanguageModel = PassedModel<LanguageModel>;

class PassedHead : public PassedModel<FeatureHead> {
 public:
  using PassedModel::PassedModel;
  std::span<const int> feature_layers() const override { return inner_->feature_layers(); }
  void read(std::span<const float> features, std::span<float> states) override {
    inner_->read(features, states);
  }
  const Mask* mask() const override { return inner_->mask(); }
};

// The mask is drafted: drafters get another mask token than the model reads.
template <class Passed>
class SaysTheMask : public Passed {
 public:
  template <class Inner>
  SaysTheMask(Inner inner, TokenId mask, TokenId told)
      : Passed(std::move(inner)), mask_(mask), told_(told) {}
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    std::vector<TokenBlock> passed(blocks.begin(), blocks.end());
    std::deque<std::vector<TokenId>> tokens;
    for (TokenBlock& block : passed) {
      tokens.emplace_back(block.tokens.begin(), block.tokens.end());
      std::replace(tokens.back().begin(), tokens.back().end(), told_, mask_);
      block.tokens = tokens.back();
    }
    Passed::forward(passed, request, output);
  }

 private:
  TokenId mask_;
  TokenId told_;
};

// Each place is read one row too early.
template <class Passed>
class ReadsTheRowBefore : public Passed {
 public:
  using Passed::Passed;
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override {
    Passed::forward(blocks, {.logits = {.kind = RowSet::Kind::all}}, all_);
    std::vector<int> rows(request.logits.rows.begin(), request.logits.rows.end());
    if (request.logits.kind != RowSet::Kind::listed) {
      int end = 0;
      for (const TokenBlock& block : blocks) {
        const int first = end;
        end += static_cast<int>(block.tokens.size());
        const bool is_last = request.logits.kind == RowSet::Kind::last_of_each_block;
        for (int row = is_last ? end - 1 : first; row < end; ++row) rows.push_back(row);
      }
    }
    const int width = all_.logits.vocabulary_size();
    float* to = output.logits.start_pass(static_cast<int>(rows.size()), width);
    for (const int row : rows) {
      const auto from = all_.logits_row(std::max(row - 1, 0));
      to = std::copy(from.begin(), from.end(), to);
    }
  }

 private:
  ForwardOutput all_;
};

// Entries of masks stay in the cache, after the kept tokens.
class HoardingSequence final : public PassedSequence {
 public:
  explicit HoardingSequence(std::unique_ptr<Sequence> inner, int n_extra = 0)
      : PassedSequence(std::move(inner)), n_extra_(n_extra) {}
  int n_kept() const override { return inner().n_kept() - n_extra_; }
  void keep(std::span<const int> path) override {
    std::vector<int> all(static_cast<std::size_t>(inner().n_pending()));
    std::iota(all.begin(), all.end(), 0);
    n_extra_ += static_cast<int>(all.size() - path.size());
    inner().keep(all);
  }
  std::unique_ptr<Sequence> fork() const override {
    return std::make_unique<HoardingSequence>(inner().fork(), n_extra_);
  }

 private:
  int n_extra_;
};

template <class Passed>
class KeepsMasks : public Passed {
 public:
  using Passed::Passed;
  std::unique_ptr<Sequence> open(const Prompt& prompt) override {
    return std::make_unique<HoardingSequence>(this->inner_->open(prompt));
  }
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_MASKED_MUTANTS_H_
