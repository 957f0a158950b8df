// What matrix products are computed in.
#ifndef OUTRIDER_TRAIN_PRODUCTS_H_
#define OUTRIDER_TRAIN_PRODUCTS_H_

namespace outrider::train {

// full: the type of the parameters, f32 in training and f64 in proofs. Parameters, norms, softmax
// and the residual stream are in that type either way.
enum class Products { full, bf16 };

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_PRODUCTS_H_
