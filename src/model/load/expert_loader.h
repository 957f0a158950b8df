// SPDX-License-Identifier: Apache-2.0
// The experts of a layer: their configuration and their tensors.
#ifndef OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_
#define OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_

#include <string_view>

#include "model/load/config_source.h"
#include "model/load/layer_loader.h"
#include "model/pass/blocks.h"

namespace outrider {

// Reads the four numbers of a mixture. Every layer has experts, of the width at that key, or of
// hidden_dim if the file has none. Throws Error on numbers out of bounds, and on routers without a
// softmax.
void read_experts(const ConfigSource& source, const ConfigKey& width, ModelConfig& config);

// The same for a family that has another name for the number of experts, and that reads itself how
// scores become weights.
void read_experts_of(const ConfigSource& source, const ConfigKey& n_experts, const ConfigKey& width,
                     ModelConfig& config);

// Whether the weights of a row's experts add up to 1; `otherwise` if the file does not say.
ExpertWeights read_expert_weights(const ConfigSource& source, bool otherwise);

// A family's names, in directories, of tensors that are stored one by one.
struct ExpertNames {
  const char* block;  // the prefix of "gate" and "experts.": "mlp."
  const char* gate;   // after "experts.N."
  const char* up;
  const char* down;
};

// Loads the experts of a layer. A directory has a tensor for each expert's matrix, or the form of
// transformers 5 in memory: mlp.experts.gate_up_proj (n, 2 * hidden_dim, dim), gate above up, and
// mlp.experts.down_proj (n, dim, hidden_dim). GGUF stacks gate, up and down in one tensor each; its
// first files of Mixtral have a tensor for each matrix. Throws as WeightLoader does.
Experts load_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                     const ExpertNames& names);

// Names, in directories, of stacked tensors: the router, without ".weight"; gates above ups (n, 2 *
// hidden_dim, dim); downs (n, dim, hidden_dim).
struct StackedExpertNames {
  const char* router;
  const char* gate_and_up;
  const char* down;
};

// For files with stacked tensors. GGUF has other names, and gates and ups either together, as
// directories do (Gemma 4), or in one tensor each.
Experts load_stacked_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                             const StackedExpertNames& names);

// Experts without a gate, for rows of that width. A tensor for each matrix
// ("experts.N.up_proj.weight"), or one for all (experts.up_proj (n, hidden_dim, width),
// experts.down_proj (n, width, hidden_dim)), as in GGUF. The router's is "gate". block: the prefix
// of these names in directories.
Experts load_plain_experts(LayerLoader& from, const ModelConfig& config, ExpertWeights weights,
                           const char* block, int width);

// Whether a tensor of that name holds matrices of experts, by the names above.
bool is_of_expert(std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_EXPERT_LOADER_H_
