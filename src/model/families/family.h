// SPDX-License-Identifier: Apache-2.0
// A family of decoders: how its configuration is read, the names of its tensors, and the
// composition of its layers. Each family is a file here and a line in registry.cc.
#ifndef OUTRIDER_MODEL_FAMILIES_FAMILY_H_
#define OUTRIDER_MODEL_FAMILIES_FAMILY_H_

#include <optional>
#include <vector>

#include "model/cache/cache_group.h"
#include "model/config.h"
#include "model/load/layer_loader.h"
#include "model/logit_form.h"
#include "model/pass/blocks.h"
#include "model/pass/pass_builder.h"

namespace outrider {

// A family's names of the tensors outside of layers, without ".weight".
struct DecoderNames {
  TensorName embedding = {"model.embed_tokens", "token_embd"};
  TensorName positions = {nullptr, nullptr};  // learned positions; null: none
  TensorName final_norm = {"model.norm", "output_norm"};
  TensorName head = {"lm_head", "output"};
  TensorName layers = {"model.layers.", "blk."};  // the prefix of a layer's number
  // The part of Hugging Face's names that some checkpoints leave out throughout; or null.
  const char* optional_prefix = nullptr;
  // The prefix that such checkpoints have instead; "": none.
  const char* other_prefix = "";
  // Hugging Face's other name of the embedding; or null.
  const char* other_embedding = nullptr;
  // For an encoder-decoder; null: none.
  TensorName encoder_layers = {nullptr, nullptr};
  TensorName encoder_norm = {nullptr, nullptr};
};

// A family's names for the parts of a multi-token prediction module besides its layer
// (heads/mtp_modules.h), without ".weight". Modules are numbered as layers after the last one, and
// their parts are among a layer's tensors; so it is in all GGUF files.
struct ModuleNames {
  TensorName embedding_norm = {"enorm", "nextn.enorm"};
  TensorName state_norm = {"hnorm", "nextn.hnorm"};
  TensorName join = {"eh_proj", "nextn.eh_proj"};
  TensorName head_norm = {"shared_head.norm", "nextn.shared_head_norm"};
  // For directories with one module apart from the layers: the prefix of its parts; its layer has
  // the further prefix "layers.0.". Null: as above.
  const char* apart = nullptr;
};

// The recurrent layers of a model, and the shape of their state.
struct RecurrentLayers {
  int n = 0;
  RecurrentShape shape = {};
};

// One model of a family, by its configuration. Immutable.
class Family {
 public:
  explicit Family(ModelConfig config) : config_(std::move(config)) {}
  virtual ~Family() = default;

  const ModelConfig& config() const { return config_; }
  // The RoPE tables that layers refer to (Attention::rope). Default: one.
  virtual std::vector<RopeTable> ropes() const { return {rope_table(config_)}; }
  // The factor of embeddings before the first layer.
  virtual float embedding_scale() const { return 1; }
  // The transformation of the products with the output matrix into logits.
  virtual LogitForm logit_form() const { return {}; }
  virtual RecurrentLayers recurrent_layers() const { return {}; }

  virtual DecoderNames names() const { return {}; }

  // The norm of that name, with `width` elements, in the form that products expect.
  virtual Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const {
    return {.weight = from.vector(name, width), .epsilon = config_.norm_epsilon};
  }
  // Loads layer `layer`; `from` finds its tensors under its prefix.
  virtual DecoderLayer load_layer(LayerLoader& from, int layer) const = 0;
  // For a family whose published checkpoints have modules: their names, and the layer of one of
  // them, whose tensors `from` finds under its prefix. compose() has its ops. Default: no names;
  // the last layer's form.
  virtual std::optional<ModuleNames> module_names() const { return std::nullopt; }
  virtual DecoderLayer load_module_layer(LayerLoader& from) const {
    return load_layer(from, config_.n_layers - 1);
  }
  // The second embedding, if there is one: tensors of the whole model.
  virtual LayerInputs load_layer_inputs(LayerLoader&) const { return {}; }
  // The ops of one layer.
  virtual void compose(PassBuilder& pass, const DecoderLayer& layer) const = 0;
  // The same for an encoder-decoder's encoder.
  virtual DecoderLayer load_encoder_layer(LayerLoader& /*from*/, int /*layer*/) const { return {}; }
  virtual void compose_encoder(PassBuilder& /*pass*/, const DecoderLayer& /*layer*/) const {}

 private:
  ModelConfig config_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_FAMILY_H_
