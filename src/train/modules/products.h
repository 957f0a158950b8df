// SPDX-License-Identifier: Apache-2.0
// The types of matrix products in training.
#ifndef OUTRIDER_TRAIN_MODULES_PRODUCTS_H_
#define OUTRIDER_TRAIN_MODULES_PRODUCTS_H_

namespace outrider::train {

// full: the type of the parameters, f32 in training and f64 in tests of gradients. Parameters and
// the residual stream have that type in both cases. bf16: inputs and outputs of products are bf16;
// norms, softmax and similar steps compute in f32 and round their results.
enum class Products { full, bf16 };

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_MODULES_PRODUCTS_H_
