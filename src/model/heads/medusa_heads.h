// Medusa heads: each predicts a token further on from the target's last feature alone (Cai et al.,
// "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads",
// arXiv 2401.10774, section 2.1.1).
#ifndef OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_
#define OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "model/load_model.h"
#include "model/pass/run_on_cpu.h"
#include "model/shared_output.h"
#include "model/weight_loader.h"

namespace outrider {

// Head k of 0 .. n_heads() - 1 gives x + SiLU(W x + b), once or for several blocks one after the
// other, to an output matrix of its own or the target's. x is what the target's output matrix reads
// (feature layer n_layers). Where the target's own output is of the token after a place, head k's
// is of the token k + 2 places on. A row's bits depend on the row alone. Not thread-safe.
class MedusaHeads {
 public:
  struct Head {
    std::vector<Linear> blocks;  // (dim, dim), one at least
    Matrix output;               // (vocabulary_size, dim); no columns: the shared one
  };
  struct Parts {
    std::vector<Head> heads;
    LanguageModel* target = nullptr;     // outlives the heads
    std::optional<SharedOutput> output;  // there if a head has no output matrix of its own
    CpuPass::Machine machine;
  };
  explicit MedusaHeads(Parts parts);

  int n_heads() const { return static_cast<int>(parts_.heads.size()); }
  int dim() const { return parts_.target->config().dim; }
  int feature_layer() const { return parts_.target->config().n_layers; }

  // features (n, dim) to output's logits (n, the target's vocabulary size). No pass of the target
  // may run at the same time.
  void forward(int head, std::span<const float> features, ForwardOutput& output);

 private:
  // One head's pass over rows: the features that come back, or logits.
  struct HeadPass {
    Rows rows;
    std::unique_ptr<CpuPass> pass;
  };

  Parts parts_;
  std::vector<HeadPass> passes_;  // of each head; they look into parts_
};

// What Medusa heads are called in their directory.
inline constexpr const char* kMedusaFile = "medusa_lm_head.safetensors";

// Whether a directory holds these and no model.
bool holds_medusa_heads_alone(const std::filesystem::path& path);

// PATH: a directory with kMedusaFile under the public checkpoints' names, as
// `outrider train medusa` writes it too: "{k}.{j}.linear.weight" and ".bias" for block j of head k,
// and "{k}.{blocks}.weight" for its output matrix, left out where that is the target's. There are
// as many heads, and blocks, as the file has. Throws Error naming the tensor, what was expected and
// what came.
std::unique_ptr<MedusaHeads> load_medusa_heads(const std::filesystem::path& path,
                                               LanguageModel& target,
                                               const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_
