// SPDX-License-Identifier: Apache-2.0
#include "model/pass/pass_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {
namespace {

void check_encoder_tokens(std::span<const TokenId> tokens, const ModelConfig& config) {
  const auto refuse = [](const std::string& expected, const std::string& got) {
    throw Error("open sequence", "prompt", expected, got);
  };
  const auto most = static_cast<std::size_t>(config.context_length);
  if (tokens.empty() || tokens.size() > most) {
    refuse(fmt::format("1 to {} tokens for the encoder (this is an encoder-decoder)", most),
           fmt::format("{}", tokens.size()));
  }
  for (const TokenId token : tokens) {
    if (token >= 0 && token < config.vocabulary_size) continue;
    refuse(fmt::format("encoder tokens 0 to {}", config.vocabulary_size - 1),
           fmt::format("{}", token));
  }
}

}  // namespace

// An encoder's output depends on its tokens alone.
std::shared_ptr<KvSequence> PassExecutor::encoder_of(std::span<const TokenId> tokens) {
  std::erase_if(encoders_, [](const auto& known) { return known.expired(); });
  for (const std::weak_ptr<KvSequence>& known : encoders_) {
    auto encoder = known.lock();
    const std::span<const TokenId> input = encoder->input();
    if (std::equal(input.begin(), input.end(), tokens.begin(), tokens.end())) return encoder;
  }
  auto encoder = KvSequence::open_encoder(cache_, tokens);
  encoders_.push_back(encoder);
  return encoder;
}

std::unique_ptr<Sequence> PassExecutor::open(const Prompt& prompt) {
  const bool has_encoder = cache_ != nullptr && cache_->has_encoder();
  if (!has_encoder && !prompt.encoder_tokens.empty()) {
    throw Error("open sequence", "prompt", "no encoder tokens (this model is a decoder)", "some");
  }
  auto sequence = std::make_unique<KvSequence>(cache_);
  if (has_encoder) {
    check_encoder_tokens(prompt.encoder_tokens, *config_);
    sequence->set_encoder(encoder_of(prompt.encoder_tokens));
  }
  const int n_reserved = std::min(prompt.n_reserved, config_->context_length + kPrefillRows);
  expect(n_reserved);
  sequence->expect(n_reserved);
  sequence->set_prompt_length(prompt.n_tokens);
  return sequence;
}

int PassExecutor::context_of(const Sequence& sequence) const {
  int context = config_->context_length;
  const int n_tokens = static_cast<const KvSequence&>(sequence).prompt_length();
  for (const RopeTable& rope : list_.ropes) {
    if (rope.is_short(n_tokens)) context = std::min(context, rope.original_context);
  }
  return context;
}

bool PassExecutor::fits(std::span<const SequenceGrowth> growths) const {
  return cache_ == nullptr || KvSequence::fit(*cache_, growths);
}

void PassExecutor::save(const Sequence& sequence, const ByteSink& write) const {
  static_cast<const KvSequence&>(sequence).save(write);
}

std::unique_ptr<Sequence> PassExecutor::restore(int n_tokens, const ByteSource& read) const {
  if (cache_ == nullptr) {
    throw Error("load sequence", "model", "one that attends", "one without a KV cache");
  }
  if (n_tokens < 0 || n_tokens > config_->context_length) {
    throw Error("load sequence", "tokens",
                fmt::format("0 to {}, the model's context", config_->context_length),
                fmt::format("{}", n_tokens));
  }
  auto sequence = std::make_unique<KvSequence>(cache_);
  sequence->load(n_tokens, read);
  return sequence;
}

std::unique_ptr<Sequence> PassExecutor::fork_without(const Sequence& whole,
                                                     std::span<const int> skip_layers) const {
  const auto* sequence = dynamic_cast<const KvSequence*>(&whole);
  if (sequence == nullptr || sequence->cache() != cache_.get()) return nullptr;
  if (!sequence->skipped_layers().empty()) return nullptr;
  // They must be the last layers, without a gap.
  int expected = config_->n_layers - static_cast<int>(skip_layers.size());
  for (const int layer : skip_layers) {
    if (layer != expected++) return nullptr;
  }
  auto fork = sequence->fork();
  auto& without = static_cast<KvSequence&>(*fork);
  without.set_skipped_layers(skip_layers);
  // Snapshots belong to the whole sequence, which may drop them for tokens; a fork that follows it
  // is never rewound.
  without.drop_snapshots();
  return fork;
}

void PassExecutor::require_skippable(std::span<const int> skip_layers) const {
  const auto keys = unreadable_keys(*config_, skip_layers);
  if (!keys) return;
  throw Error("forward", "layers to skip",
              fmt::format("layer {} only with layer {}, which reads its keys and values",
                          keys->lender, keys->layer),
              fmt::format("{} alone", keys->lender));
}

}  // namespace outrider
