# SPDX-License-Identifier: Apache-2.0
# Whether an nvcc can compile the CUDA kernels: it may know no C++20 (before CUDA 12.0), or refuse
# this machine's C++ compiler. A build without them is better than none.
#   outrider_try_nvcc(nvcc architectures release trouble)
# sets the architectures that it knows, its release as CUDA counts them (13000 for 13.0), and, where
# it cannot, why not; the architectures are then none.
function(outrider_try_nvcc nvcc architectures release trouble)
  set(${architectures} "" PARENT_SCOPE)
  set(${release} 0 PARENT_SCOPE)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE version ERROR_QUIET)
  execute_process(COMMAND ${nvcc} --list-gpu-code OUTPUT_VARIABLE known ERROR_QUIET)
  string(REGEX MATCHALL "[0-9]+" known "${known}")
  if(NOT version MATCHES "release ([0-9]+)\\.([0-9]+)" OR NOT known)
    set(${trouble} "it does not say which release it is, and what it compiles for" PARENT_SCOPE)
    return()
  endif()
  math(EXPR found "${CMAKE_MATCH_1} * 1000 + ${CMAKE_MATCH_2} * 10")
  set(trial ${CMAKE_CURRENT_BINARY_DIR}/cuda/trial)
  file(WRITE ${trial}.cu
    "#include <cstddef>\n#include <span>\n#include <vector>\n"
    "__global__ void trial(const __grid_constant__ std::size_t n) {}\n")
  list(GET known 0 one)
  execute_process(COMMAND ${nvcc} -cubin -arch=sm_${one} -std=c++20 -o ${trial}.cubin ${trial}.cu
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT result EQUAL 0)
    string(REGEX REPLACE "\n.*" "" text "${text}")
    set(${trouble} "${text}" PARENT_SCOPE)
    return()
  endif()
  set(${architectures} ${known} PARENT_SCOPE)
  set(${release} ${found} PARENT_SCOPE)
  set(${trouble} "" PARENT_SCOPE)
endfunction()
