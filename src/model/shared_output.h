// The output matrix that heads share with their target (feature_head.h, medusa_heads.h).
#ifndef OUTRIDER_MODEL_SHARED_OUTPUT_H_
#define OUTRIDER_MODEL_SHARED_OUTPUT_H_

#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "model/logit_form.h"
#include "model/pass/run_on_cpu.h"
#include "model/weight_loader.h"
#include "tensor/matrix.h"

namespace outrider {

// The product with an output matrix alone, as a pass.
class Projection {
 public:
  // head outlives it and does not move. form: what its products become. parts: of a rank, how many
  // columns each one has (PassBuilder::logits).
  Projection(const Matrix& head, const LogitForm& form, const CpuPass::Machine& machine,
             const std::vector<int>& parts = {});
  // features (n, head.k()) to output's logits (n, columns of all parts), n_rows and
  // vocabulary_size; no features in output. Throws Error if the features are no whole number of
  // rows, and what CpuPass::run does.
  void project(std::span<const float> features, ForwardOutput& output);
  // This rank's part of that, for rank 0.
  void project_part(std::span<const float> features);

 private:
  int lay_out(std::span<const float> features);

  const Matrix* head_;
  int n_columns_;
  Rows read_;  // (n, head.k())
  CpuPass pass_;
};

// The target's own matrix or, where a head's weights are asked for in fewer bits than that has, a
// copy in these: a head of one layer spends half of a step and more on the vocabulary, and what it
// drafts is judged in any case. Not thread-safe.
class SharedOutput {
 public:
  // options: those of the head. The target outlives this.
  SharedOutput(LanguageModel& target, const WeightOptions& options);

  // As LanguageModel::project. No pass of the target may run at the same time.
  void project(std::span<const float> features, ForwardOutput& output);

  bool is_copy() const { return copy_ != nullptr; }

 private:
  LanguageModel* target_;
  std::unique_ptr<const Matrix> copy_;      // or null
  std::unique_ptr<Projection> projection_;  // with the copy
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_SHARED_OUTPUT_H_
