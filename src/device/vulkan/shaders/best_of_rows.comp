// SPDX-License-Identifier: Apache-2.0
// The index and bits of the largest number of a part of each row. Numbers are compared as integers
// in the same order, so that the driver's float arithmetic is not used.
#version 450

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kReadsParts = 0u;
layout(push_constant) uniform Numbers {
  uint n;
  uint part;  // numbers for each workgroup
  uint n_parts;
  uint max_rows;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer X { uint x[]; };  // (rows, n), words or pairs of words
layout(std430, binding = 2) writeonly buffer Best { uint best[]; };  // (rows, n_parts, 2)

const uint kLanes = 64u;
const uint kNone = 0xffffffffu;
shared uint ranks_of[kLanes];
shared uint indices_of[kLanes];
shared uint bits_of[kLanes];

// Larger for the larger number; equal for 0 and -0; 0 for NaN.
uint rank_of(uint bits) {
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0u;
  if (bits == 0x80000000u) bits = 0u;
  return (bits & 0x80000000u) != 0u ? ~bits : bits | 0x80000000u;
}

void main() {
  uint lane = gl_LocalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], max_rows)) return;
  uint begin = gl_WorkGroupID.x * part;
  uint end = min(begin + part, n);
  uint rank = 0u;
  uint index = kNone;
  uint bits = 0u;
  for (uint i = begin + lane; i < end; i += kLanes) {
    uint at = row * n + i;
    uint its_index = kReadsParts != 0u ? x[2u * at] : i;
    uint its_bits = kReadsParts != 0u ? x[2u * at + 1u] : x[at];
    uint its_rank = rank_of(its_bits);
    if (index == kNone || its_rank > rank) {
      rank = its_rank;
      index = its_index;
      bits = its_bits;
    }
  }
  ranks_of[lane] = rank;
  indices_of[lane] = index;
  bits_of[lane] = bits;
  barrier();
  if (lane != 0u) return;
  for (uint i = 1u; i < kLanes; ++i) {
    if (ranks_of[i] > rank || (ranks_of[i] == rank && indices_of[i] < index)) {
      rank = ranks_of[i];
      index = indices_of[i];
      bits = bits_of[i];
    }
  }
  uint at = (row * n_parts + gl_WorkGroupID.x) * 2u;
  best[at] = index;
  best[at + 1u] = bits;
}
