# SPDX-License-Identifier: Apache-2.0
# Sets the instruction sets of the kernel files from which dispatch.cc chooses on 64-bit ARM. Included
# by the library and by tests/neon; `kernels_folder` is the folder of the kernels.
set_source_files_properties(${kernels_folder}/neon.cc PROPERTIES COMPILE_OPTIONS
                            -march=armv8.2-a+dotprod)
set_source_files_properties(${kernels_folder}/neon_i8mm.cc PROPERTIES COMPILE_OPTIONS
                            -march=armv8.2-a+dotprod+i8mm)
