# SPDX-License-Identifier: Apache-2.0
# Writes compiled CUDA kernels into a C++ source that defines cubins() (src/device/cuda/cubins.h).
#   cmake -D FOLDER=... -D ARCHITECTURES=75,80 -D RELEASE=13000 -D OUTPUT=cubin_code.cc
#         -P cmake/embed_cubins.cmake
string(REPLACE "," ";" architectures "${ARCHITECTURES}")
set(texts "")
set(entries "")
foreach(architecture IN LISTS architectures)
  file(READ "${FOLDER}/kernels.sm_${architecture}.cubin" hex HEX)
  # Pads to whole words of eight bytes; the lowest byte comes first.
  string(LENGTH "${hex}" length)
  math(EXPR rest "${length} % 16")
  if(NOT rest EQUAL 0)
    math(EXPR missing "16 - ${rest}")
    string(REPEAT "0" ${missing} zeros)
    string(APPEND hex "${zeros}")
  endif()
  string(REGEX REPLACE "(..)(..)(..)(..)(..)(..)(..)(..)" "0x\\8\\7\\6\\5\\4\\3\\2\\1,\n" words "${hex}")
  string(APPEND texts "constexpr std::uint64_t kWords${architecture}[] = {\n${words}};\n")
  string(APPEND entries "  all.push_back({${architecture}, kWords${architecture}, ${RELEASE}});\n")
endforeach()

file(WRITE "${OUTPUT}" "// Made by cmake/embed_cubins.cmake.
#include \"device/cuda/cubins.h\"

#include <vector>

namespace outrider::device::cuda {
namespace {

${texts}
std::vector<Cubin> make_cubins() {
  std::vector<Cubin> all;
${entries}  return all;
}

}  // namespace

std::span<const Cubin> cubins() {
  static const std::vector<Cubin> all = make_cubins();
  return all;
}

}  // namespace outrider::device::cuda
")
