# SPDX-License-Identifier: Apache-2.0
# Compiles the CUDA kernels for one architecture; what ptxas says of registers and spills goes into a
# file beside the cubin, which tests read.
#   cmake -D NVCC=nvcc -D ARCHITECTURE=75 -D SOURCE=kernels.cu -D INCLUDES=root -D CUBIN=out.cubin
#         -P cmake/compile_cubin.cmake
# A product and a sum stay apart (-fmad=false): where they are to be one, kernels say so.
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
