// SPDX-License-Identifier: Apache-2.0
// Chooses OpenBLAS kernels, if libtorch was built with OpenBLAS.
#ifndef OUTRIDER_APPS_TRAINER_BLAS_CORE_H_
#define OUTRIDER_APPS_TRAINER_BLAS_CORE_H_

namespace outrider::cli {

// OpenBLAS chooses its kernels when it is loaded, by the processor's model. It treats a model newer
// than itself as one of twenty years ago (on an Emerald Rapids Xeon, 0.3.21 takes Prescott's: 230
// tokens a second of training instead of 790). If that happened on a processor with AVX2, this
// function sets OPENBLAS_CORETYPE to kernels that the processor supports and restarts the program.
// It returns without a change if the variable is already set, or the library is not OpenBLAS. It
// also returns if the restart is refused; training is then slow, but correct. It does nothing on
// systems other than Linux on x86-64. Call it first in main. `argv` ends with a null pointer.
void take_fitting_blas_core(char** argv);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_BLAS_CORE_H_
