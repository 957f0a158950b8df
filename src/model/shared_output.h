// SPDX-License-Identifier: Apache-2.0
// The output matrix that heads share with their target (feature_head.h, medusa_heads.h).
#ifndef OUTRIDER_MODEL_SHARED_OUTPUT_H_
#define OUTRIDER_MODEL_SHARED_OUTPUT_H_

#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "model/logit_form.h"
#include "model/pass/on_cpu/run_on_cpu.h"
#include "model/weight_loader.h"
#include "tensor/matrix.h"

namespace outrider {

// The product with an output matrix alone, as a pass.
class Projection {
 public:
  // head must outlive it and not move. form: the transformation of the products. parts: for a rank,
  // the number of columns of each rank (PassBuilder::logits).
  Projection(const Matrix& head, const LogitForm& form, const CpuPass::Machine& machine,
             const std::vector<int>& parts = {});
  // Maps features (n, head.k()) to output's logits (n, columns of all parts), n_rows and
  // vocabulary_size; sets no features. Throws Error if the features are not whole rows, and what
  // CpuPass::run throws.
  void project(std::span<const float> features, ForwardOutput& output);
  // Its two parts, for ranks: refusals and allocations happen in the first, before others are asked
  // to take part. It returns where the logits go, the argument of run(). Without features there is
  // nothing to run.
  float* prepare(std::span<const float> features, ForwardOutput& output);
  void run(float* logits) { pass_.run({.logits = logits}); }
  // Computes this rank's part of that, for rank 0.
  void project_part(std::span<const float> features);

 private:
  int prepare(std::span<const float> features);

  const Matrix* head_;
  int n_columns_;
  Rows read_;  // (n, head.k())
  CpuPass pass_;
};

// The target's own matrix or, if a head's weights are requested in fewer bits, a copy in these. A
// head of one layer spends half of a step or more on the vocabulary, and its drafts are verified in
// any case. Not thread-safe.
class SharedOutput {
 public:
  // options: those of the head. The target must outlive this.
  SharedOutput(LanguageModel& target, const WeightOptions& options);

  // As LanguageModel::project. No pass of the target may run at the same time.
  void project(std::span<const float> features, ForwardOutput& output);

  bool is_copy() const { return copy_ != nullptr; }

 private:
  LanguageModel* target_;
  std::unique_ptr<const Matrix> copy_;      // or null
  std::unique_ptr<Projection> projection_;  // for the copy
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_SHARED_OUTPUT_H_
