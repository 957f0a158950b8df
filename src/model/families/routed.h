// Mixtures of experts as DeepSeek-V2 and V3 have them (DeepSeek-AI 2024, arXiv 2405.04434, section
// 2.2, and 2412.19437, section 2.1.2), and GLM-4.5 (Zeng et al. 2025, arXiv 2508.06471): dense
// layers first, then layers of many small experts beside one that every row uses. Experts are
// chosen within groups; of V3's kind by sigmoids and a bias that chooses and does not weigh.
#ifndef OUTRIDER_MODEL_FAMILIES_ROUTED_H_
#define OUTRIDER_MODEL_FAMILIES_ROUTED_H_

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// What a model's files say of its experts, beside what ModelConfig holds.
struct RoutedConfig {
  int n_dense = 0;  // layers without experts, the first ones
  ExpertWeights weights = ExpertWeights::softmax;
  ExpertGroups groups = {};
  float scale = 1;               // of the weights of a row's experts
  bool has_choice_bias = false;  // of directories; GGUF has a tensor or none
  int shared_dim = 0;            // width of all shared experts together; 0: none
};

// How families differ. Numbers are of a config.json that leaves them out: transformers' defaults.
struct RoutedForm {
  bool by_sigmoid = true;  // else by a softmax, without a bias
  int n_dense = 1;
  double scale = 1;
  int n_shared = 1;
  int n_groups = 1;
  int n_groups_used = 1;
  // Of GGUF files that do not say it; beside a softmax there, where they have no bias of choices.
  bool by_sigmoid_in_gguf = false;
  // config.json may list the layers that have experts (mlp_layer_types): all behind the dense ones.
  bool has_layer_list = false;
  // config.json's key of the width of all shared experts together; null: their number says it.
  const char* shared_width = nullptr;
};

// Reads what n_experts and the following of `decoder` are, and all of the above. n_layers is right
// by then. Throws Error that names a key that is out of bounds or means another model.
RoutedConfig read_routed(const ConfigSource& source, const RoutedForm& form, ModelConfig& decoder);

// Throws Error unless the switch is off, or not there; of config.json.
void require_off(const ConfigSource& source, const char* name);

// The MLP of a dense layer, or the experts and the shared one.
void load_routed(LayerLoader& from, const ModelConfig& config, const RoutedConfig& routed,
                 int layer, DecoderLayer& loaded);

// x += experts(read) + shared(read), or x += mlp(read).
void add_routed(PassBuilder& pass, Rows read, const DecoderLayer& layer);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_ROUTED_H_
