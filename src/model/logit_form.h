// SPDX-License-Identifier: Apache-2.0
// How a model's products with its output matrix become logits.
#ifndef OUTRIDER_MODEL_LOGIT_FORM_H_
#define OUTRIDER_MODEL_LOGIT_FORM_H_

namespace outrider {

// They are multiplied by scale and, if there is a cap, become softcap * tanh(x / softcap). Other
// code that multiplies by that matrix applies the same (SharedOutput).
struct LogitForm {
  float scale = 1;
  float softcap = 0;  // 0: none
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOGIT_FORM_H_
