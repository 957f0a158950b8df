// The kernels that OpenBLAS multiplies with, where libtorch was built with it.
#ifndef OUTRIDER_APPS_TRAINER_BLAS_CORE_H_
#define OUTRIDER_APPS_TRAINER_BLAS_CORE_H_

namespace outrider::cli {

// OpenBLAS takes its kernels when it is loaded, by the processor's model, and a model newer than
// itself for one of twenty years ago (on an Emerald Rapids Xeon, 0.3.21 takes Prescott's: 230
// tokens a second of training instead of 790). Where it has done so on a processor with AVX2, this
// names kernels that the processor has instructions for (OPENBLAS_CORETYPE) and starts the program
// again; otherwise, where the variable is set already, or with another library, it returns. Call it
// first of all. `argv` ends with a null pointer.
void take_fitting_blas_core(char** argv);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TRAINER_BLAS_CORE_H_
