// SPDX-License-Identifier: Apache-2.0
// Medusa heads: each predicts a later token from the target's last feature alone (Cai et al.,
// "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding Heads", arXiv
// 2401.10774, section 2.1.1).
#ifndef OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_
#define OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "model/load_model.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/shared_output.h"
#include "model/weight_loader.h"

namespace outrider {

// Head k of 0 .. n_heads() - 1 computes x + SiLU(W x + b), once or for several blocks in sequence,
// and applies its own output matrix or the target's. x is the input of the target's output matrix
// (feature layer n_layers). The target's own output predicts the token after a position; head k
// predicts the token k + 2 positions on. A row's bits depend on the row alone. Not thread-safe.
class MedusaHeads {
 public:
  struct Head {
    std::vector<Linear> blocks;  // (dim, dim), at least one
    Matrix output;               // (vocabulary_size, dim); no columns: the shared one
  };
  struct Parts {
    std::vector<Head> heads;
    LanguageModel* target = nullptr;     // outlives the heads
    std::optional<SharedOutput> output;  // set if a head has no output matrix of its own
    CpuPass::Machine machine;
  };
  explicit MedusaHeads(Parts parts);

  int n_heads() const { return static_cast<int>(parts_.heads.size()); }
  int dim() const { return parts_.target->config().dim; }
  int feature_layer() const { return parts_.target->config().n_layers; }

  // Maps features (n, dim) to output's logits (n, the target's vocabulary size). No pass of the
  // target may run at the same time.
  void forward(int head, std::span<const float> features, ForwardOutput& output);

 private:
  // One head's pass over rows, and its result: features or logits.
  struct HeadPass {
    Rows rows;
    std::unique_ptr<CpuPass> pass;
  };

  Parts parts_;
  std::vector<HeadPass> passes_;  // of each head; they refer to parts_
};

// The name of the file of Medusa heads in their directory.
inline constexpr const char* kMedusaFile = "medusa_lm_head.safetensors";

// Whether a directory holds these and no model.
bool holds_medusa_heads_alone(const std::filesystem::path& path);

// PATH: a directory with kMedusaFile, with the names of public checkpoints; `outrider train medusa`
// writes the same. Names are "{k}.{j}.linear.weight" and ".bias" for block j of head k, and
// "{k}.{blocks}.weight" for its output matrix, which is missing if it is the target's. The file
// determines the number of heads and blocks. Throws Error with the tensor, what was expected and
// what was found.
std::unique_ptr<MedusaHeads> load_medusa_heads(const std::filesystem::path& path,
                                               LanguageModel& target,
                                               const LoadOptions& options = {});

}  // namespace outrider

#endif  // OUTRIDER_MODEL_HEADS_MEDUSA_HEADS_H_
