# SPDX-License-Identifier: Apache-2.0
# The instruction sets of the files that dispatch.cc chooses on 64-bit ARM, for the library and for
# tests/neon. `kernels_folder` is that of the kernels.
set_source_files_properties(${kernels_folder}/neon.cc PROPERTIES COMPILE_OPTIONS
                            -march=armv8.2-a+dotprod)
set_source_files_properties(${kernels_folder}/neon_i8mm.cc PROPERTIES COMPILE_OPTIONS
                            -march=armv8.2-a+dotprod+i8mm)
