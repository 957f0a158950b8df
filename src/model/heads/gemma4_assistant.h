// SPDX-License-Identifier: Apache-2.0
// The assistants published with Gemma 4, as transformers 5.12.1 runs them
// (Gemma4AssistantForCausalLM): a few layers without own keys, which read the target's.
#ifndef OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_
#define OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/families/gemma/gemma4.h"
#include "model/language_model.h"
#include "model/load_model.h"
#include "model/pass/blocks.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "outrider/types.h"

namespace outrider {

// A row reads a token's embedding, as the target's first layer does, and a state:
//
//   x = before [embedding, state];  h = norm(layers(x));  state' = after h;  logits = head h
//
// Its layers are Gemma 4's without products for keys and values. Those with a window attend to the
// keys and values of the target's last layer with a window and its own keys; the others to those of
// its last such layer without a window. Let the target have run n - 1 tokens of a text of n. All
// rows of a draft attend to these n - 1 and have position n - 1, at any depth: a row's depth
// affects its state alone. The first row's state is the target's at position n - 2, after its final
// norm; any other row's is the output of its parent's row.
//
// A row's bits depend only on its token, its state and the target's keys and values. The head uses
// the target's embedding and reads its sequences, so no pass of the target may run at the same
// time. Not thread-safe.
class Gemma4Assistant {
 public:
  // Some files divide the tokens into clusters. A row computes logits for the n_read clusters with
  // the best scores (among equals the lowest ids); other tokens have minus infinity.
  struct Clusters {
    Linear scores;                // (n, dim), f32
    int n_read = 0;               // 1 to n
    std::vector<TokenId> tokens;  // each token once: cluster by cluster, of equal size
    int n() const { return scores.matrix.n_columns(); }
  };
  struct Parts {
    std::unique_ptr<const Gemma4> family;  // of its layers
    LanguageModel* target = nullptr;       // outlives the head; has a key_writer()
    Linear before;                         // (dim, 2 * width of states)
    std::vector<DecoderLayer> layers;
    Norm final_norm;  // (dim)
    Linear after;     // (width of states, dim)
    Matrix head;      // (vocabulary size, dim)
    std::optional<Clusters> clusters = std::nullopt;
  };
  explicit Gemma4Assistant(Parts parts);

  // Width of states: the target's.
  int state_dim() const { return parts_.after.matrix.n_columns(); }
  int vocabulary_size() const { return parts_.head.n_columns(); }
  // The target's hidden state that is a text's first state (ForwardRequest::feature_layers).
  std::span<const int> feature_layers() const { return feature_layers_; }

  // Whether rows may follow that sequence of the target: if it was just rewound as far as its
  // windows allow, keys that a row reads may be gone.
  bool can_read(const Sequence& sequence) const { return pass_->has_keys_for_readers(sequence); }

  // Runs rows after the target's sequences, which are unchanged. tokens (n) and states (n,
  // state_dim) of the readers' rows, one reader after the other. Writes to output their logits (n,
  // vocabulary size) and, as features, the states that they return (n, state_dim). Throws Error on
  // sizes that do not fit, and as CpuPass::prepare_readers does.
  void forward(std::span<const KeyReaders> readers, std::span<const TokenId> tokens,
               std::span<const float> states, ForwardOutput& output);

 private:
  void keep_best_clusters(const float* scores, std::span<float> logits);

  Parts parts_;
  std::array<int, 1> feature_layers_;
  Rows embedding_, state_, given_, scores_;
  std::optional<CpuPass> pass_;  // refers to parts_

  // Reused from pass to pass.
  std::vector<float> embeddings_;  // (n, state_dim)
  std::vector<int> order_;         // of clusters
  std::vector<char> is_read_;      // (vocabulary size)
};

// Whether a directory's config.json, or a GGUF file, describes such a head. false if there is
// neither. Throws Error on a malformed one.
bool is_gemma4_assistant(const std::filesystem::path& path);

// PATH: a directory with config.json and safetensors, or a GGUF file (gemma4-assistant), which has
// no clusters. Throws Error with the file, tensor or key, what was expected and what was found.
// Throws also if the head cannot read that target: another width, vocabulary, heads or window.
std::unique_ptr<Gemma4Assistant> load_gemma4_assistant(const std::filesystem::path& path,
                                                       LanguageModel& target,
                                                       const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_
