# SPDX-License-Identifier: Apache-2.0
# Compiles the CUDA kernels for one architecture. The report of ptxas on registers and spills is
# written to a file beside the cubin, which tests read.
#   cmake -D NVCC=nvcc -D ARCHITECTURE=75 -D SOURCE=kernels.cu -D INCLUDES=root -D CUBIN=out.cubin
#         -P cmake/compile_cubin.cmake
# The compiler must not fuse a product and a sum (-fmad=false): kernels ask for fused ones explicitly.
execute_process(
  COMMAND ${NVCC} -cubin -arch=sm_${ARCHITECTURE} -std=c++20 -fmad=false -ftz=false -prec-div=true
          -prec-sqrt=true -Xptxas=-v -I${INCLUDES}/src -I${INCLUDES}/include -o ${CUBIN} ${SOURCE}
  OUTPUT_VARIABLE text
  ERROR_VARIABLE text
  RESULT_VARIABLE result)
file(WRITE "${CUBIN}.txt" "${text}")
if(NOT result EQUAL 0)
  message(FATAL_ERROR "nvcc, for sm_${ARCHITECTURE}:\n${text}")
endif()
