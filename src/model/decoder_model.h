// SPDX-License-Identifier: Apache-2.0
// A decoder of any family: its weights, and its forward pass as a list of ops. An encoder-decoder
// also has a list for the encoder, run once over the encoder's input.
#ifndef OUTRIDER_MODEL_DECODER_MODEL_H_
#define OUTRIDER_MODEL_DECODER_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "device/device.h"
#include "io/tensor_source.h"
#include "model/families/family.h"
#include "model/language_model.h"
#include "model/load/decoder_weights.h"
#include "model/pass/expert_memory.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/pass/pass_executor.h"
#include "model/shared_output.h"
#include "tensor/matrix.h"

namespace outrider {

// One pass at a time. Logits of a row have the same bits whatever else is in the pass, however its
// ancestors were run, and for any number of threads (language_model.h).
class DecoderModel final : public LanguageModel {
 public:
  struct Parts {
    std::unique_ptr<const Family> family;
    std::unique_ptr<TensorSource> source;  // holds the bytes that weights refer to
    DecoderWeights weights;
    std::unique_ptr<ExpertMemory> expert_memory;  // for experts that stay in the source; or null
    CpuPass::Machine machine;
    // Passes run on it; null: on the processor, which also computes for heads that use parts of the
    // model.
    std::shared_ptr<device::Device> device = nullptr;
    std::string device_name = {};  // for messages
  };
  explicit DecoderModel(Parts parts);

  const ModelConfig& config() const override { return parts_.family->config(); }
  Footprint footprint() const override;
  std::vector<std::string> warnings() const override;
  std::string failure() const override { return executor_->failure(); }
  std::unique_ptr<Sequence> open(const Prompt& prompt) override { return executor_->open(prompt); }
  void encode(Sequence& sequence) override;
  int context_of(const Sequence& sequence) const override {
    return executor_->context_of(sequence);
  }
  bool fits(std::span<const SequenceGrowth> growths) const override {
    return executor_->fits(growths);
  }
  std::unique_ptr<Sequence> fork_without(const Sequence& whole,
                                         std::span<const int> skip_layers) const override {
    return executor_->fork_without(whole, skip_layers);
  }
  void save(const Sequence& sequence, const ByteSink& write) const override {
    executor_->save(sequence, write);
  }
  std::unique_ptr<Sequence> restore(int n_tokens, const ByteSource& read) override {
    return executor_->restore(n_tokens, read);
  }
  void forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
               ForwardOutput& output) override;
  // The parts of a pass, for ranks that hold the model together. Refusals and allocations happen in
  // the first two, before the other ranks are asked to take part.
  void prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request);
  // Allocates the outputs. Returns where the logits go; null if they stay on a device.
  float* resize_output(const ForwardRequest& request, ForwardOutput& output);
  void run(const ForwardRequest& request, float* logits, ForwardOutput& output);
  // The last part on ranks other than 0, which have no outputs.
  void run_part() { executor_->run({}); }
  void embed(std::span<const TokenId> tokens, std::span<float> out) override;
  void project(std::span<const float> features, ForwardOutput& output) override;
  // The parts of project(), in the same way.
  float* lay_out_projection(std::span<const float> features, ForwardOutput& output) {
    return projection_.prepare(features, output);
  }
  void run_projection(float* logits) { projection_.run(logits); }
  void project_part(std::span<const float> features) { projection_.project_part(features); }
  // The threads of every rank that holds the model, for footprint().
  void set_rank_threads(std::vector<int> n_threads) { rank_threads_ = std::move(n_threads); }
  std::optional<Matrix> narrower_output(WeightKind kind) const override;
  LogitForm logit_form() const override { return parts_.family->logit_form(); }
  const CpuPass* key_writer() const override { return cpu_; }

  // As in CpuPass.
  void set_min_share_ns(std::int64_t share_ns) {
    if (cpu_ != nullptr) cpu_->set_min_share_ns(share_ns);
    if (encoder_pass_ != nullptr) encoder_pass_->set_min_share_ns(share_ns);
  }
  const PassExecutor& executor() const { return *executor_; }
  // For a model on the processor.
  const CpuPass& pass() const { return *cpu_; }
  const CpuPass* encoder_pass() const { return encoder_pass_.get(); }  // null for decoders

 private:
  Parts parts_;
  std::unique_ptr<PassExecutor> executor_;  // refers to parts_
  CpuPass* cpu_;                            // the same; null on a device
  std::unique_ptr<CpuPass> encoder_pass_;   // refers to parts_ and its cache; null for decoders
  Projection projection_;                   // refers to parts_
  std::vector<int> rank_threads_;           // (n_ranks); empty for one process
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_DECODER_MODEL_H_
