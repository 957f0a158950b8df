// y = activation(gate) * up, or without up (kernels/rows.h, silu_multiply and gelu_multiply).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "arithmetic.glsl"

layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kActivation = 0u;  // GateActivation
layout(push_constant) uniform Numbers {
  uint n;
  uint most_rows;
  uint has_up;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Gate { float gate[]; };  // (rows, n)
layout(std430, binding = 2) readonly buffer Up { float up[]; };      // (rows, n), where has_up is 1
layout(std430, binding = 3) writeonly buffer Y { float y[]; };       // (rows, n)

const uint kGeluTanh = 1u;

void main() {
  uint i = gl_GlobalInvocationID.x;
  uint row = gl_WorkGroupID.y;
  if (row >= min(facts[0], most_rows) || i >= n) return;
  uint at = row * n + i;
  float value = gate[at];
  float inner = difference_of(0.0, value);
  if (kActivation == kGeluTanh) {
    float cubic = product_of(uintBitsToFloat(0x3d372713u), value);  // 0.044715
    inner = product_of(value, fused(cubic, value, 1.0));
    inner = product_of(inner, uintBitsToFloat(0xbfcc422au));  // -2 sqrt(2 / pi)
  }
  float activated = divided(value, sum_of(1.0, exponential(inner)));
  y[at] = product_of(activated, has_up != 0u ? up[at] : 1.0);
}
