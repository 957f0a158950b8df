// SPDX-License-Identifier: Apache-2.0
#include "train/modules/initial_weights.h"

#include <cmath>

namespace outrider::train {

void draw_weights(torch::nn::Module& module, const CountWrites& count_writes) {
  constexpr double kSpread = 0.02;
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module.named_parameters()) {
    const std::string& name = parameter.key();
    torch::Tensor& values = parameter.value();
    if (name.ends_with("norm.weight")) {
      values.fill_(1);
    } else if (name.ends_with(".bias")) {
      values.zero_();
    } else if (const int n_writes = count_writes(name); n_writes > 0) {
      values.normal_(0, kSpread / std::sqrt(static_cast<double>(n_writes)));
    } else {
      values.normal_(0, kSpread);
    }
  }
}

}  // namespace outrider::train
