// SPDX-License-Identifier: Apache-2.0
// Sums of four products of signed bytes, exact: by the instruction if the device has it (compiled
// with DOT), otherwise byte by byte.
#ifdef DOT
#extension GL_EXT_spirv_intrinsics : require
// OpSDot on packed vectors of four bytes (SPV_KHR_integer_dot_product): capabilities
// DotProductInput4x8BitPacked and DotProduct; the format 0 is four bytes in a word.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6018, 6019],
                  id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);
int dot_of(uint a, uint b) { return packed_dot(a, b, 0); }
#else
int dot_of(uint a, uint b) {
  int total = 0;
  for (int i = 0; i < 32; i += 8) {
    total += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
  }
  return total;
}
#endif
