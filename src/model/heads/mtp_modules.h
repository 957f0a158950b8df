// Multi-token prediction modules of a model (DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv
// 2412.19437, section 2.2).
#ifndef OUTRIDER_MODEL_HEADS_MTP_MODULES_H_
#define OUTRIDER_MODEL_HEADS_MTP_MODULES_H_

#include <filesystem>
#include <memory>
#include <vector>

#include "model/heads/feature_head.h"
#include "model/load_model.h"

namespace outrider {

// The modules that stand behind the target's n layers, in their order: in the target's own
// directory or in one that holds them alone. Module k of config.json's "num_nextn_predict_layers"
// has the tensors "model.layers.{n + k}.*", as `outrider train mtp` and `train lm --mtp` write them
// and DeepSeek-V3's checkpoints name them. The layers are of the target's own kind.
//
// Module k, from 0, is a head whose row i reads a state of place i and token i + k + 1:
// x = eh_proj [norm(embedding); norm(state)], the layer gives the state, and logits are the
// target's output matrix times its norm. The states of module 0 are the target's last features,
// those of any other what the module before gave at the same place. (feature_head.h calls that the
// next place's state: modules do not run on their own.)
//
// Throws Error naming the file, tensor or key, what was expected and what came. The target outlives
// the modules.
std::vector<std::unique_ptr<FeatureHead>> load_mtp_modules(const std::filesystem::path& path,
                                                           LanguageModel& target,
                                                           const LoadOptions& options = {});

// Whether modules stand behind the layers in a directory: by its config.json and its tensors'
// names. A file has none. Throws Error for a config.json that is no JSON object, or for tensors
// that cannot be read.
bool has_mtp_modules(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MTP_MODULES_H_
