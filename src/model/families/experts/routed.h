// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts as in DeepSeek-V2 and V3 (DeepSeek-AI 2024, arXiv 2405.04434, section 2.2,
// and 2412.19437, section 2.1.2), and GLM-4.5 (Zeng et al. 2025, arXiv 2508.06471): dense layers
// first, then layers of many small experts with a shared expert that every row uses. Experts are
// chosen within groups. V3's form chooses by sigmoids plus a bias; the bias does not enter the
// weights.
#ifndef OUTRIDER_MODEL_FAMILIES_EXPERTS_ROUTED_H_
#define OUTRIDER_MODEL_FAMILIES_EXPERTS_ROUTED_H_

#include "model/families/family.h"
#include "model/load/config_source.h"

namespace outrider {

// What a model's files say about its experts, besides ModelConfig.
struct RoutedConfig {
  int n_dense = 0;  // layers without experts, the first ones
  ExpertWeights weights = ExpertWeights::softmax;
  ExpertGroups groups = {};
  float scale = 1;               // of the weights of a row's experts
  bool has_choice_bias = false;  // for directories; GGUF files have a tensor or not
  int shared_dim = 0;            // width of all shared experts together; 0: none
};

// How families differ. Numbers are transformers' defaults, for a config.json without them.
struct RoutedForm {
  bool by_sigmoid = true;  // else by a softmax, without a bias
  int n_dense = 1;
  double scale = 1;
  int n_shared = 1;
  int n_groups = 1;
  int n_groups_used = 1;
  // For GGUF files that name no scoring function. true: sigmoids. false: sigmoids if the file has a
  // bias of choices, else a softmax.
  bool by_sigmoid_in_gguf = false;
  // config.json may list the layers with experts (mlp_layer_types): all layers after the dense
  // ones.
  bool has_layer_list = false;
  // config.json's key of the width of all shared experts together; null: computed from their
  // number.
  const char* shared_width = nullptr;
};

// Reads n_experts and the members after it into `decoder`, and all of the above. decoder.n_layers
// must be set. Throws Error, with the key, if a value is out of bounds or means another model.
RoutedConfig read_routed(const ConfigSource& source, const RoutedForm& form, ModelConfig& decoder);

// Throws Error unless that switch of config.json is off or missing.
void require_off(const ConfigSource& source, const char* name);

// Loads the MLP of a dense layer, or the experts and the shared one.
void load_routed(LayerLoader& from, const ModelConfig& config, const RoutedConfig& routed,
                 int layer, DecoderLayer& loaded);

// x += experts(read) + shared(read), or x += mlp(read).
void add_routed(PassBuilder& pass, Rows read, const DecoderLayer& layer);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_EXPERTS_ROUTED_H_
