// What matrix products are computed in.
#ifndef OUTRIDER_TRAIN_PRODUCTS_H_
#define OUTRIDER_TRAIN_PRODUCTS_H_

namespace outrider::train {

// Parameters, norms, softmax and the residual stream stay in f32 either way.
enum class Products { f32, bf16 };

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_PRODUCTS_H_
