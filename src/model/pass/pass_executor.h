// SPDX-License-Identifier: Apache-2.0
// Runs a list of ops (op.h) on the processor (run_on_cpu.h) or a device (run_on_device.h). This
// class holds what both share: the list, the KV cache and its sequences, and the planned pass.
#ifndef OUTRIDER_MODEL_PASS_PASS_EXECUTOR_H_
#define OUTRIDER_MODEL_PASS_PASS_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/table.h"
#include "model/cache/kv_sequence.h"
#include "model/config.h"
#include "model/language_model.h"
#include "model/pass/op.h"
#include "model/pass/pass_plan.h"

namespace outrider {

// A pass consists of
//
//   pass.prepare(blocks, request);   throws; no sequence has changed then
//   pass.run(outputs);
//   ... rows are read
//
// One pass at a time. A row's bits depend on its own inputs alone (kernels/table.h), not on other
// rows nor on the executor.
class PassExecutor {
 public:
  // Where a pass writes the requested outputs.
  struct Outputs {
    // (n_asked, width of the buffer kLogits); null on ranks other than 0, and if distant_logits()
    // has them.
    float* logits = nullptr;
    std::span<const int> feature_layers = {};  // those of the request
    float* features = nullptr;                 // (n_rows, feature_layers.size() * dim)
  };

  virtual ~PassExecutor() = default;
  PassExecutor(const PassExecutor&) = delete;
  PassExecutor& operator=(const PassExecutor&) = delete;

  // Opens an empty sequence. For an encoder-decoder it shares the encoder's sequence of any
  // existing one with the same encoder tokens. Throws Error for encoder tokens with a decoder. With
  // an encoder-decoder, throws if there are none, too many for the context, or some outside the
  // vocabulary.
  std::unique_ptr<Sequence> open(const Prompt& prompt);
  // As LanguageModel has them.
  int context_of(const Sequence& sequence) const;
  bool fits(std::span<const SequenceGrowth> growths) const;
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const;
  void save(const Sequence& sequence, const ByteSink& write) const;
  std::unique_ptr<Sequence> restore(int n_tokens, const ByteSource& read) const;

  // Checks the blocks, plans their rows and allocates for the pass. Throws Error (or
  // std::bad_alloc); no sequence has changed then.
  virtual void prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request) = 0;
  const PassPlan& plan() const { return plan_; }
  // Where the logits of the prepared pass will be, if not in host memory; otherwise null. run()
  // fills it. Call it when the earlier rows of the pass's ForwardOutput are no longer read.
  virtual std::shared_ptr<DistantRows> distant_logits() { return nullptr; }
  // As LanguageModel::failure(), for the executor of the list.
  virtual std::string failure() const { return {}; }
  // The rows become pending nodes of their sequences, and the ops run. Throws Error if a device or
  // a rank is lost; the sequences are then unusable.
  virtual void run(const Outputs& outputs) = 0;
  // For the last pass: the average number of experts in use, over layers with experts; 0 without
  // any.
  virtual double experts_a_layer() const { return 0; }

  // Keys and values of one token in all layers.
  std::int64_t kv_bytes_per_token() const {
    return cache_ == nullptr ? 0 : static_cast<std::int64_t>(cache_->token_bytes());
  }
  // For a model with recurrent layers: the size of a sequence's state at one token, and of one
  // pending node's inputs. 0 for others.
  std::int64_t state_bytes() const {
    return cache_ == nullptr ? 0 : static_cast<std::int64_t>(cache_->state_bytes());
  }
  std::int64_t input_bytes() const {
    return cache_ == nullptr ? 0 : static_cast<std::int64_t>(cache_->input_bytes());
  }
  kernels::KvKind kv() const { return kv_; }
  const PassList& list() const { return list_; }

 protected:
  // config: null for lists without sequences. The derived class creates cache_.
  PassExecutor(PassList list, const ModelConfig* config, kernels::KvKind kv)
      : list_(std::move(list)), config_(config), kv_(kv) {}

  // Throws Error if these layers cannot be skipped.
  void require_skippable(std::span<const int> skip_layers) const;
  // Announces a sequence of up to n_tokens.
  virtual void expect(int /*n_tokens*/) {}

  PassList list_;
  const ModelConfig* config_;
  kernels::KvKind kv_;
  std::shared_ptr<KvCache> cache_;  // null if no op attends
  PassPlan plan_;

 private:
  std::shared_ptr<KvSequence> encoder_of(std::span<const TokenId> tokens);

  std::vector<std::weak_ptr<KvSequence>> encoders_;  // shared by open(); some may have expired
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_PASS_EXECUTOR_H_
