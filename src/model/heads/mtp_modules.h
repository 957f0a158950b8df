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

// The modules that stand behind the target's n layers, in their order: in the target's own files
// (a directory, or a GGUF file), in another form of them, or in a directory that holds them alone.
//
// Those of published checkpoints have a layer of the target's own family and the names that this
// gives them (Family::module_names): DeepSeek-V3's and GLM's "model.layers.{n + k}.*", Qwen3-Next's
// and Qwen3.5's "mtp.*", GGUF's "blk.{n + k}.*" with parts below "nextn.". In other families a
// directory has what `outrider train mtp` and `train lm --mtp` write: DeepSeek-V3's names and a
// Llama's layers, "num_nextn_predict_layers" of them. What published files repeat of the target's
// embedding and output matrix is not read.
//
// Module k, from 0, is a head whose row i reads a state of place i and token i + k + 1, at position
// i: x = eh_proj [norm(embedding); norm(state)], the layer gives the state, and logits are the
// target's output matrix times its norm. The states of module 0 are the target's last features,
// behind its final norm; those of any other what the module before gave at the same place, in
// front of the norm. (feature_head.h calls that the next place's state: several modules do not run
// on their own.) A single module runs on: the state that it gives is behind its norm, as the
// target's is, and is what its row i + 1 reads.
//
// Throws Error naming the file, tensor or key, what was expected and what came. The target outlives
// the modules.
std::vector<std::unique_ptr<FeatureHead>> load_mtp_modules(const std::filesystem::path& path,
                                                           LanguageModel& target,
                                                           const LoadOptions& options = {});

// How many modules the names of a file's tensors speak of.
int count_mtp_modules(const TensorSource& source);

// Whether a directory or a GGUF file has modules, by the names of its tensors and, of those that
// stand behind a directory's layers, by its config.json. Throws Error for a config.json that is no
// JSON object, or for tensors that cannot be read.
bool has_mtp_modules(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MTP_MODULES_H_
