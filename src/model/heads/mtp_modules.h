// SPDX-License-Identifier: Apache-2.0
// Multi-token prediction modules of a model (DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv
// 2412.19437, section 2.2).
#ifndef OUTRIDER_MODEL_HEADS_MTP_MODULES_H_
#define OUTRIDER_MODEL_HEADS_MTP_MODULES_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "io/tensor_source.h"
#include "model/heads/feature_head.h"
#include "model/load_model.h"

namespace outrider {

// Loads the modules after the target's n layers, in order: from the target's files (a directory, or
// a GGUF file), from another form of them, or from a directory that holds them alone.
//
// Modules of published checkpoints have a layer of the target's family and the names of
// Family::module_names: DeepSeek-V3's and GLM's "model.layers.{n + k}.*", Qwen3-Next's and
// Qwen3.5's "mtp.*", GGUF's "blk.{n + k}.*" with parts under "nextn.". For other families a
// directory has what `outrider train mtp` and `train lm --mtp` write: DeepSeek-V3's names and a
// Llama's layers, "num_nextn_predict_layers" of them. Copies of the target's embedding and output
// matrix in published files are not read.
//
// Module k, from 0, is a head whose row i reads a state of position i and token i + k + 1, at
// position i: x = eh_proj [norm(embedding); norm(state)], the layer returns the state, and logits
// are the target's output matrix times its norm. The states of module 0 are the target's last
// features, after its final norm. Those of any other module are the previous module's at the same
// position, before the norm. (feature_head.h calls that the next position's state: several modules
// do not continue from their own states.) A single module does: the state that it returns is after
// its norm, as the target's is, and is the input of row i + 1.
//
// Throws Error with the file, tensor or key, what was expected and what was found. The target must
// outlive the modules.
std::vector<std::unique_ptr<FeatureHead>> load_mtp_modules(const std::filesystem::path& path,
                                                           LanguageModel& target,
                                                           const LoadOptions& options = {});

// The number of modules by the names of a file's tensors.
int count_mtp_modules(const TensorSource& source);

// Whether a directory or a GGUF file has modules, by the names of its tensors and, for modules
// after a directory's layers, by its config.json. Throws Error for a config.json that is not a JSON
// object, or for tensors that cannot be read.
bool has_mtp_modules(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MTP_MODULES_H_
