// The output matrix that heads share with their target (feature_head.h, medusa_heads.h).
#ifndef OUTRIDER_MODEL_SHARED_OUTPUT_H_
#define OUTRIDER_MODEL_SHARED_OUTPUT_H_

#include <optional>
#include <span>

#include "model/language_model.h"
#include "model/weight_loader.h"
#include "tensor/matrix.h"

namespace outrider {

// features (n, head.k()) to output's logits (n, head.n_columns()), n_rows and vocabulary_size; no
// features in output. room is reused. n_threads: of the team. Throws Error if the features are no
// whole number of rows.
void project_features(const Matrix& head, const KernelTable& table, int n_threads,
                      std::span<const float> features, Activations& room, ForwardOutput& output);

// The target's own matrix or, where a head's weights are asked for in fewer bits than that has, a
// copy in these: a head of one layer spends half of a step and more on the vocabulary, and what it
// drafts is judged in any case. Not thread-safe.
class SharedOutput {
 public:
  // options: those of the head. The target outlives this.
  SharedOutput(LanguageModel& target, const WeightOptions& options);

  // As LanguageModel::project. No pass of the target may run at the same time.
  void project(std::span<const float> features, ForwardOutput& output);

  bool is_copy() const { return copy_.has_value(); }

 private:
  LanguageModel* target_;
  const KernelTable* table_;
  int n_threads_;
  std::optional<Matrix> copy_;
  Activations rows_;  // reused from pass to pass
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_SHARED_OUTPUT_H_
