// What matrix products are computed in.
#ifndef OUTRIDER_TRAIN_PRODUCTS_H_
#define OUTRIDER_TRAIN_PRODUCTS_H_

namespace outrider::train {

// full: the type of the parameters, f32 in training and f64 in proofs. Parameters and the residual
// stream are in that type either way. bf16: what products read and give is bf16; norms, softmax and
// the like compute in f32 and round what they give.
enum class Products { full, bf16 };

}  // namespace outrider::train

#endif  // OUTRIDER_TRAIN_PRODUCTS_H_
