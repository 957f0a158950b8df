// The assistants that Gemma 4 was published with, as transformers 5.12.1 runs them
// (Gemma4AssistantForCausalLM): a few layers that have no keys of their own and read the target's.
#ifndef OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_
#define OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_

#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/families/gemma4.h"
#include "model/language_model.h"
#include "model/load_model.h"
#include "model/pass/blocks.h"
#include "model/pass/run_on_cpu.h"
#include "outrider/types.h"

namespace outrider {

// A row reads a token's embedding, as the target's first layer does, and a state:
//
//   x = before [embedding, state];  h = norm(layers(x));  state' = after h;  logits = head h
//
// Its layers are Gemma 4's without products for keys and values. Those with a window attend to what
// the target's last layer with a window and with keys of its own has stored, the others likewise to
// its last layer of theirs. Behind a text of n tokens of which the target has run n - 1, all rows
// of a draft attend to these n - 1 and stand at position n - 1, however deep they are: a row's
// depth shows in its state alone. The state of the first one is the target's at place n - 2, behind
// its final norm; that of any other what its parent's row gave.
//
// A row's bits depend on its token, its state and the target's keys and values alone. The head
// borrows the target's embedding and reads its sequences: no pass of the target may run at the same
// time. Not thread-safe.
class Gemma4Assistant {
 public:
  // Of some files: tokens in clusters, of which a row reads the n_read best, by scores of their own
  // (of equal ones those of the lowest ids). Other tokens have minus infinity.
  struct Clusters {
    Linear scores;                // (n, dim), f32
    int n_read = 0;               // 1 to n
    std::vector<TokenId> tokens;  // each token once: cluster by cluster, of one size
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
  // Which of the target's hidden states is a text's first state (ForwardRequest::feature_layers).
  std::span<const int> feature_layers() const { return feature_layers_; }

  // Whether rows may stand behind that sequence of the target: where it was just rewound as far as
  // its windows allow, keys that a row reads may be gone.
  bool can_read(const Sequence& sequence) const { return pass_->has_keys_for_readers(sequence); }

  // Rows behind the target's sequences, which stay as they are: tokens (n), states (n, state_dim)
  // of the readers' rows, one reader after the other. Leaves in output their logits (n, vocabulary
  // size) and, as features, the states that they give (n, state_dim). Throws Error on sizes that do
  // not fit, and as CpuPass::lay_out_readers does.
  void forward(std::span<const KeyReaders> readers, std::span<const TokenId> tokens,
               std::span<const float> states, ForwardOutput& output);

 private:
  void keep_best_clusters(const float* scores, std::span<float> logits);

  Parts parts_;
  std::array<int, 1> feature_layers_;
  Rows embedding_, state_, given_, scores_;
  std::optional<CpuPass> pass_;  // looks into parts_

  // Reused from pass to pass.
  std::vector<float> embeddings_;  // (n, state_dim)
  std::vector<int> order_;         // of clusters
  std::vector<char> is_read_;      // (vocabulary size)
};

// Whether a directory's config.json speaks of such a head, or a GGUF file is one. false where there
// is neither. Throws Error on a malformed one.
bool is_gemma4_assistant(const std::filesystem::path& path);

// PATH: a directory with config.json and safetensors, or a GGUF file (gemma4-assistant), which has
// no clusters. Throws Error naming the file, tensor or key, what was expected and what came, also
// where the target is not one that the head can read: another width, vocabulary, heads or window.
std::unique_ptr<Gemma4Assistant> load_gemma4_assistant(const std::filesystem::path& path,
                                                       LanguageModel& target,
                                                       const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_GEMMA4_ASSISTANT_H_
