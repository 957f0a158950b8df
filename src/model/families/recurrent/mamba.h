// SPDX-License-Identifier: Apache-2.0
// Layers of Mamba-2 in configurations and files: shared by Granite 4 and Nemotron-H.
#ifndef OUTRIDER_MODEL_FAMILIES_RECURRENT_MAMBA_H_
#define OUTRIDER_MODEL_FAMILIES_RECURRENT_MAMBA_H_

#include <limits>

#include "model/cache/delta_shape.h"
#include "model/load/config_source.h"
#include "model/load/layer_loader.h"
#include "model/pass/blocks.h"

namespace outrider {

// Far above any model's.
inline constexpr int kMaxMambaHeads = 1024;
inline constexpr int kMaxMambaDim = 512;

// What a model's files say about all of these layers.
struct MambaForm {
  DeltaShape shape;
  bool filter_bias = false;
  bool product_bias = false;  // of the input and the output product
  float min_step = 0;
  float max_step = std::numeric_limits<float>::infinity();
  bool norms_groups = false;  // each group's channels have a separate norm; else all share one
};

// GGUF's width of a head: ssm.inner_size divided by the number of heads. Throws Error if that is
// not whole.
int read_mamba_head_dim(const ConfigSource& source, int n_heads);

// Throws Error unless the groups of B and C have equally many heads.
void require_whole_groups(const ConfigSource& source, const ConfigKey& n_heads,
                          const ConfigKey& n_groups, const DeltaShape& shape);

// Reads time_step_limit of config.json, which GGUF does not store; no limits if it is missing.
// Throws Error on invalid limits.
void read_step_limits(const ConfigSource& source, MambaForm& form);

// Loads a layer with stream width `dim`; its tensors are under `block` in directories ("mixer.").
// Throws as WeightLoader does, and for a state that would grow by itself.
Mamba2 load_mamba(LayerLoader& from, const MambaForm& form, const char* block, int dim,
                  float epsilon);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_RECURRENT_MAMBA_H_
