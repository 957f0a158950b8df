// The experts of a layer: what configurations say of them, and their tensors.
#ifndef OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_
#define OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_

#include <string_view>

#include "model/load/config_source.h"
#include "model/load/layer_loader.h"
#include "model/pass/blocks.h"

namespace outrider {

// The four numbers of a mixture's config: every layer has experts, of the width at that key; where
// the file has none, of hidden_dim. Throws Error on numbers out of bounds, and on routers that make
// weights by no softmax.
void read_experts(const ConfigSource& source, const ConfigKey& width, ModelConfig& config);

// The same of a family that has its own name for the number of experts, and that says itself how
// scores become weights.
void read_experts_of(const ConfigSource& source, const ConfigKey& n_experts, const ConfigKey& width,
                     ModelConfig& config);

// Whether the weights of a row's experts add up to 1; `otherwise` where the file does not say.
ExpertWeights read_expert_weights(const ConfigSource& source, bool otherwise);

// How a family's directories name what they store one by one.
struct ExpertNames {
  const char* block;  // what stands before "gate" and "experts.": "mlp."
  const char* gate;   // behind "experts.N."
  const char* up;
  const char* down;
};

// A directory has a tensor for each expert's matrix, or what transformers 5 holds in memory:
// mlp.experts.gate_up_proj (n, 2 * hidden_dim, dim), gate above up, and mlp.experts.down_proj
// (n, dim, hidden_dim). GGUF stacks gate, up and down, each alone; its first files of Mixtral have
// a tensor for each matrix. Throws as WeightLoader does.
Experts load_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                     const ExpertNames& names);

// How directories name what they store stacked: the router, without ".weight"; gates above ups
// (n, 2 * hidden_dim, dim); downs (n, dim, hidden_dim).
struct StackedExpertNames {
  const char* router;
  const char* gate_and_up;
  const char* down;
};

// Of a file that has them so. GGUF has names of its own, and gates and ups as directories do (Gemma
// 4's) or each alone.
Experts load_stacked_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                             const StackedExpertNames& names);

// Experts without a gate, of rows so wide: a tensor for each matrix ("experts.N.up_proj.weight"),
// or one for all (experts.up_proj (n, hidden_dim, width), experts.down_proj (n, width,
// hidden_dim)), as GGUF has them. The router's is "gate". block: what stands before these names in
// directories.
Experts load_plain_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                           const char* block, int width);

// Whether a tensor of that name holds matrices of experts, by the names above.
bool is_of_expert(std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_
