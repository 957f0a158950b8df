# SPDX-License-Identifier: Apache-2.0
# Writes compiled shaders into a C++ source that defines shader_codes()
# (src/device/vulkan/shader_code.h).
#   cmake -D FOLDER=... -D NAMES=product_int8.plain,product_int8.double -D OUTPUT=shader_code.cc
#         -P cmake/embed_shaders.cmake
# A name is the kernel's name and the features that the shader uses: plain, double, dots or
# double_dots.
string(REPLACE "," ";" names "${NAMES}")
set(texts "")
set(entries "")
set(number 0)
foreach(name IN LISTS names)
  string(REGEX MATCH "^([a-z0-9_]+)\\.([a-z_]+)$" matched "${name}")
  set(kernel "${CMAKE_MATCH_1}")
  set(uses "${CMAKE_MATCH_2}")
  set(uses_double false)
  set(uses_dots false)
  if(uses MATCHES "double")
    set(uses_double true)
  endif()
  if(uses MATCHES "dots")
    set(uses_dots true)
  endif()
  file(READ "${FOLDER}/${name}.spv" hex HEX)
  # Words of four bytes; the lowest byte comes first.
  string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1," words "${hex}")
  string(REGEX REPLACE "((0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,)(0x[0-9a-f]+,))" "\\1\n" words "${words}")
  string(APPEND texts "constexpr std::uint32_t kWords${number}[] = {\n${words}};\n")
  string(APPEND entries "      {\"${kernel}\", ${uses_double}, ${uses_dots}, kWords${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Made by cmake/embed_shaders.cmake.
#include \"device/vulkan/shader_code.h\"

namespace outrider::device {
namespace {

${texts}
}  // namespace

std::span<const ShaderCode> shader_codes() {
  static const ShaderCode codes[] = {
${entries}  };
  return codes;
}

}  // namespace outrider::device
")
