// SPDX-License-Identifier: Apache-2.0
// Heads for tiny targets, written as the files of real heads, and the target and weights of the
// golden programs (tests/golden/make/make_heads_golden.py).
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_TINY_HEADS_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_TINY_HEADS_H_

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "outrider/types.h"
#include "tests/support/models/tiny_model.h"

namespace outrider::test {

// The weights of that name in the golden programs: a chirp, since plain waves would give matrices
// of rank two.
std::vector<float> chirp(const std::string& name, const std::vector<std::int64_t>& shape);

// The golden programs' target.
TinyShape golden_shape();
TinyModel golden_target();

// A tensor and its name in the file. `chirped` is the name whose chirp it contains.
struct HeadTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::string chirped = {};  // empty: `name`
};

// A head as `outrider train` writes it for a target of that shape, with chirps for weights;
// docs/training.md lists the names. The directory is created if needed. `inputs` as in
// config.json's "eagle_inputs"; empty: key left out, as in public files. The embedding repeats the
// golden target's, or is the head's own.
void write_eagle_head(const TinyShape& target, const std::filesystem::path& directory,
                      const std::string& inputs = {}, bool own_embedding = false);
// An empty vocabulary: all tokens, and no "d2t".
void write_eagle3_head(const TinyShape& target, std::span<const TokenId> draft_vocabulary,
                       const std::filesystem::path& directory);

// An EAGLE-3 head as other programs write it.
struct Eagle3Form {
  std::string config;  // JSON: keys of config.json besides the layer's shape
  int n_features = 3;  // hidden states read
  std::string prefix = "midlayer.";
  bool speculators = false;  // the layer's shape is in "transformer_layer_config"
  bool own_embedding = false;
  bool input_norm = false;
  bool fc_norm = false;
  int n_layers = 1;                            // the first one's prefix is `prefix`
  bool mask_hidden = false;                    // P-EAGLE's
  int mask_width = 0;                          // of it; 0: the hidden states'
  std::vector<TokenId> draft_vocabulary = {};  // empty: all tokens, and no "d2t"
};
void write_eagle3_form(const TinyShape& target, const Eagle3Form& form,
                       const std::filesystem::path& directory);

// The layers of the golden block heads (tests/golden/make/make_block_heads_golden.py): the golden
// target's width, with other heads and another RoPE base.
TinyShape golden_block_shape();

// A DFlash head of two layers of that shape, on a target of its width, vocabulary and number of
// layers, in the authors' file format: a block of five, and the hidden states after the first and
// the last layer but one.
struct DflashForm {
  std::string config = {};  // JSON merge patch (RFC 7386) of config.json
  int n_features = 2;       // hidden states read
  std::string prefix = {};  // of all names
  // Written in speculators' format: the layers' keys are in a separate section, which `config` does
  // not change. The head has its own matrices, with the golden target's values.
  bool speculators = false;
  std::vector<TokenId> draft_vocabulary = {};  // of a separate output matrix; empty: all tokens
  // A DSpark head with this "markov_head_type", of rank 4, and a confidence head; its keys are at
  // the top level. Empty: DFlash.
  std::string markov = {};
  bool confidence_reads_token = true;
};
void write_dflash_head(const TinyShape& layers, const DflashForm& form,
                       const std::filesystem::path& directory);

void write_medusa_heads(const TinyShape& target, int n_heads, bool own_output,
                        const std::filesystem::path& directory);

// An assistant like Gemma 4's (model/heads/gemma4_assistant.h), of two layers that read the keys of
// the target's last layer.
void write_assistant(const TinyShape& target, const std::filesystem::path& directory);

// Adds modules to a target that write_hugging_face has written there: a second shard, an index, and
// the number of modules in config.json. Their chirps are those of the trainer's names, "0.enorm..."
void write_mtp_modules(const TinyShape& target, int n_modules,
                       const std::filesystem::path& directory);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_TINY_HEADS_H_
