// What a model makes of the products with its output matrix before they are logits.
#ifndef OUTRIDER_MODEL_LOGIT_FORM_H_
#define OUTRIDER_MODEL_LOGIT_FORM_H_

namespace outrider {

// They are multiplied by scale and, where there is a cap, become softcap * tanh(x / softcap).
// Whoever multiplies with that matrix in the model's place does the same (SharedOutput).
struct LogitForm {
  float scale = 1;
  float softcap = 0;  // 0: none
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOGIT_FORM_H_
