// SPDX-License-Identifier: Apache-2.0
// Each op on the CPU: one thread's share of it.
#ifndef OUTRIDER_MODEL_PASS_ON_CPU_CPU_OPS_H_
#define OUTRIDER_MODEL_PASS_ON_CPU_CPU_OPS_H_

#include "model/pass/convolution_window.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/pass/op.h"
#include "tensor/team.h"

namespace outrider {

struct CpuOps {
  CpuPass& pass;
  const Team& team;

  void operator()(const op::Embed& op) const;
  void operator()(const op::Angles& op) const;
  void operator()(const op::Normalise& op) const;
  void operator()(const op::Multiply& op) const;
  void operator()(const op::PlaceHeads& op) const;
  void operator()(const op::Attend& op) const;
  void operator()(const op::PlaceLatents& op) const;   // latent_on_cpu.cc
  void operator()(const op::SplitHeads& op) const;     // latent_on_cpu.cc
  void operator()(const op::MultiplyHeads& op) const;  // latent_on_cpu.cc
  void operator()(const op::Recur& op) const;          // recur_on_cpu.cc
  void operator()(const op::Prepare& op) const;
  void operator()(const op::Gate& op) const;
  void operator()(const op::Add& op) const;
  void operator()(const op::LeaveFeature& op) const;
  void operator()(const op::Spread& op) const;
  void operator()(const op::SoftCap& op) const;
  void operator()(const op::Route& op) const;
  void operator()(const op::MultiplyExperts& op) const;
  void operator()(const op::SumExperts& op) const;
  void operator()(const op::Gather& op) const;         // gather_on_cpu.cc
  void operator()(const op::GatherExperts& op) const;  // gather_on_cpu.cc

 private:
  void recur(const op::Recur& op, const op::Recur::Convolution& layer) const;
  void recur(const op::Recur& op, const op::Recur::Delta& layer) const;  // delta_on_cpu.cc
  void make_delta_inputs(const op::Recur& op, const op::Recur::Delta& layer, int i,
                         int key_head) const;
  void recur(const op::Recur& op, const op::Recur::MambaInputs& layer) const;  // mamba_on_cpu.cc
  void recur(const op::Recur& op, const op::Recur::Mamba& layer) const;
  // A convolution whose inputs are kept with nodes.
  struct Filter {
    const std::vector<float>& weights;  // (n_taps, width)
    const std::vector<float>& bias;     // (width), or empty
    int n_taps;
    int width;
  };
  void convolve_channels(const Filter& filter, const ConvolutionWindow& window,
                         const float* product, int channel, int n, float* inputs,
                         float* to) const;  // walk_on_cpu.cc
  // States that are updated over the nodes of a pass.
  struct States {
    const DeltaShape& shape;
    int cache_layer;
    Rows query, to;
    void (*step)(const kernels::DeltaStep& step);  // of the pass's table
  };
  void walk_states(const States& states, int head) const;
  void walk_columns(const States& states, const StateWalks::Walk& walk, int head, int first) const;
  Activations& buffer(const Rows& rows) const;
  float* row(const Rows& rows, std::int64_t i) const;  // also logits
  void add_bias(const Rows& rows, std::int64_t i) const;
  // For those of the experts in use that are in memory.
  void multiply_experts(const op::MultiplyExperts& op, std::span<const int> ids) const;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_CPU_CPU_OPS_H_
