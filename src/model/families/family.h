// A family of decoders: how its configuration is read, what its tensors are called and how its
// layers are composed. Each family is a file here and a line in registry.cc.
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

// What a family calls its tensors outside of layers, without ".weight".
struct DecoderNames {
  TensorName embedding = {"model.embed_tokens", "token_embd"};
  TensorName positions = {nullptr, nullptr};  // learned ones; null: none
  TensorName final_norm = {"model.norm", "output_norm"};
  TensorName head = {"lm_head", "output"};
  TensorName layers = {"model.layers.", "blk."};  // what stands before a layer's number
  // Of Hugging Face's names, which some checkpoints leave out throughout; or null.
  const char* optional_prefix = nullptr;
  // What those have in its place; "": nothing.
  const char* other_prefix = "";
  // Hugging Face's other name of the embedding; or null.
  const char* other_embedding = nullptr;
  // Of an encoder-decoder; null: none.
  TensorName encoder_layers = {nullptr, nullptr};
  TensorName encoder_norm = {nullptr, nullptr};
};

// What a family calls the parts of a multi-token prediction module beside its layer
// (heads/mtp_modules.h), without ".weight". Modules stand as layers behind the last, numbered on,
// and their parts among a layer's tensors; so they do in all GGUF files.
struct ModuleNames {
  TensorName embedding_norm = {"enorm", "nextn.enorm"};
  TensorName state_norm = {"hnorm", "nextn.hnorm"};
  TensorName join = {"eh_proj", "nextn.eh_proj"};
  TensorName head_norm = {"shared_head.norm", "nextn.shared_head_norm"};
  // Of directories that have one module, apart from the layers: what its parts begin with. Its
  // layer stands behind that, as "layers.0.". Null: as above.
  const char* apart = nullptr;
};

// The recurrent layers of a model, and what each of them keeps.
struct RecurrentLayers {
  int n = 0;
  RecurrentShape shape = {};
};

// One model of a family: what its configuration says. Immutable.
class Family {
 public:
  explicit Family(ModelConfig config) : config_(std::move(config)) {}
  virtual ~Family() = default;

  const ModelConfig& config() const { return config_; }
  // The RoPE tables that layers refer to (Attention::rope). Default: one.
  virtual std::vector<RopeTable> ropes() const { return {rope_table(config_)}; }
  // What embeddings are multiplied by before the first layer.
  virtual float embedding_scale() const { return 1; }
  // What the products with the output matrix become.
  virtual LogitForm logit_form() const { return {}; }
  virtual RecurrentLayers recurrent_layers() const { return {}; }

  virtual DecoderNames names() const { return {}; }

  // The norm of that name, of `width` elements, as products expect it.
  virtual Norm load_norm(const LayerLoader& from, const TensorName& name, int width) const {
    return {.weight = from.vector(name, width), .epsilon = config_.norm_epsilon};
  }
  // Layer `layer`, whose tensors `from` finds under its prefix.
  virtual DecoderLayer load_layer(LayerLoader& from, int layer) const = 0;
  // Of a family whose published checkpoints carry modules: what these are called, and the layer of
  // one of them, whose tensors `from` finds under its prefix. compose() has its ops. Default: no
  // such names; the last layer's form.
  virtual std::optional<ModuleNames> module_names() const { return std::nullopt; }
  virtual DecoderLayer load_module_layer(LayerLoader& from) const {
    return load_layer(from, config_.n_layers - 1);
  }
  // The second embedding, where there is one: the tensors of the whole model.
  virtual LayerInputs load_layer_inputs(LayerLoader&) const { return {}; }
  // The ops of one layer.
  virtual void compose(PassBuilder& pass, const DecoderLayer& layer) const = 0;
  // The same of an encoder-decoder's encoder.
  virtual DecoderLayer load_encoder_layer(LayerLoader& /*from*/, int /*layer*/) const { return {}; }
  virtual void compose_encoder(PassBuilder& /*pass*/, const DecoderLayer& /*layer*/) const {}

 private:
  ModelConfig config_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_FAMILIES_FAMILY_H_
