// SPDX-License-Identifier: Apache-2.0
// Attention of one query head of one row over one split of its positions (kernels/attention/attention.h): the
// online softmax, chunk by chunk of 64 positions, in the processor's order. Each lane handles a
// key, later a dim. The including file defines how keys and values are multiplied:
//   void take_query()                         once, before the first chunk
//   float score_of(uint lane)                 of the key in that lane's slot
//   void take_weights(uint n)                 of a chunk of n, before its sums
//   float with_chunk(float so_far, uint dim, uint n)
// These read slot_of[], weights[], and the query from query_at on.

layout(local_size_x = 64) in;
// A separate form of the shader: the cap would cost devices seconds of compilation even for models
// without one.
layout(constant_id = 0) const uint kCapsScores = 0u;
layout(push_constant) uniform Numbers {
  uint n_heads;
  uint n_kv_heads;
  uint head_dim;
  uint max_rows;
  uint max_splits;
  uint max_pages;
  uint block_words;  // one head's keys, or values, in a page
  float scale;
  uint first_head;  // of the row's heads
  uint heads_of_row;
  float cap;  // of scores, if they have one
  float inverse_cap;
};
layout(std430, binding = 0) readonly buffer Facts { uint facts[]; };
layout(std430, binding = 1) readonly buffer Queries { float queries[]; };  // (rows, heads, dims)
layout(std430, binding = 2) readonly buffer Rows { uvec4 rows[]; };        // AttendRowWords
layout(std430, binding = 3) readonly buffer Slots { uint slots[]; };
layout(std430, binding = 4) readonly buffer Pages { uint pages[]; };  // (rows, max_pages)
layout(std430, binding = 5) readonly buffer Cache { uint cache[]; };
layout(std430, binding = 6) writeonly buffer Sums { float sums[]; };      // (rows, splits, heads, dims)
layout(std430, binding = 7) writeonly buffer States { vec2 states[]; };  // (rows, splits, heads)

const uint kChunk = 64u;
const uint kSplit = 1024u;
const uint kVectorLanes = 16u;
const uint kMaxDims = 256u;
const uint kDimsOfLane = kMaxDims / 64u;

shared float weights[kChunk];  // scores before the softmax
shared uint keys_at[kChunk];   // per position of the chunk: the beginning of its page's keys
shared uint tokens[kChunk];    // and its place in the page
shared float of_lanes[kVectorLanes];
shared float shared_highest;
shared float shared_sum;

uint query_at;
uint values_behind;  // words from a page's keys to its values

void take_query();
float score_of(uint lane);
void take_weights(uint n);
float with_chunk(float so_far, uint dim, uint n);

// The larger one as in the processor's vectors: the second if one is NaN.
float larger(float a, float b) { return a > b ? a : b; }

// The sum over 16 lanes, by the tree of kernels/table.h; computed by one lane.
float tree_sum() {
  float all[kVectorLanes];
  for (uint i = 0u; i < kVectorLanes; ++i) all[i] = of_lanes[i];
  for (uint width = kVectorLanes / 2u; width > 0u; width /= 2u) {
    for (uint i = 0u; i < width; ++i) all[i] = sum_of(all[i], all[i + width]);
  }
  return all[0];
}
float tree_largest() {
  float all[kVectorLanes];
  for (uint i = 0u; i < kVectorLanes; ++i) all[i] = of_lanes[i];
  for (uint width = kVectorLanes / 2u; width > 0u; width /= 2u) {
    for (uint i = 0u; i < width; ++i) all[i] = larger(all[i], all[i + width]);
  }
  return all[0];
}

const uint kMinusInfinity = 0xff800000u;

void attend() {
  uint lane = gl_LocalInvocationID.x;
  uint head = gl_WorkGroupID.x;
  uint row = gl_WorkGroupID.y;
  uint split = gl_WorkGroupID.z;
  if (row >= min(facts[0], max_rows)) return;
  uint n_keys = rows[row].x;
  uint first_key = rows[row].y;
  uint n_contiguous = rows[row].z;
  uint slots_at = rows[row].w;
  if (split * kSplit >= n_keys || (split + 1u) * kSplit <= first_key) return;
  uint kv_head = head / (n_heads / n_kv_heads);
  query_at = (row * heads_of_row + first_head + head) * head_dim;
  values_behind = n_kv_heads * block_words;

  take_query();
  float highest = uintBitsToFloat(kMinusInfinity);
  float total = 0.0;
  float out_of[kDimsOfLane];
  for (uint i = 0u; i < kDimsOfLane; ++i) out_of[i] = 0.0;
  uint end_key = min(n_keys, (split + 1u) * kSplit);
  uint begin = max(split * kSplit, first_key / kChunk * kChunk);
  for (; begin < end_key; begin += kChunk) {
    uint n = min(end_key - begin, kChunk);
    uint position = begin + lane;
    barrier();
    if (lane < n) {
      uint slot = position < n_contiguous ? position : slots[slots_at + position - n_contiguous];
      keys_at[lane] = pages[row * max_pages + slot / kChunk] + kv_head * block_words;
      tokens[lane] = slot % kChunk;
    }
    barrier();
    float score = uintBitsToFloat(kMinusInfinity);
    if (lane < n && position >= first_key) {
      score = score_of(lane);
      if (kCapsScores != 0u) score = capped(score, cap, inverse_cap);
    }
    weights[lane] = score;
    barrier();
    // The highest score so far: by lanes of vectors, then by the tree.
    if (lane < kVectorLanes) {
      float most = highest;
      for (uint i = lane; i < kChunk; i += kVectorLanes) most = larger(most, weights[i]);
      of_lanes[lane] = most;
    }
    barrier();
    if (lane == 0u) shared_highest = tree_largest();
    barrier();
    float now = shared_highest;
    float beside = floatBitsToUint(now) == kMinusInfinity ? 0.0 : now;
    weights[lane] = exponential_of_negative(difference_of(weights[lane], beside));
    barrier();
    if (lane < kVectorLanes) {
      float lane_sum = 0.0;
      for (uint i = lane; i < kChunk; i += kVectorLanes) lane_sum = sum_of(lane_sum, weights[i]);
      of_lanes[lane] = lane_sum;
    }
    barrier();
    if (lane == 0u) shared_sum = tree_sum();
    barrier();
    float factor = 1.0;
    bool is_nan = is_nan_bits(floatBitsToUint(now)) || is_nan_bits(floatBitsToUint(highest));
    if (is_nan || now != highest) {
      factor = exponential_of_negative(difference_of(highest, now));
      for (uint i = 0u; i < kDimsOfLane; ++i) out_of[i] = product_of(out_of[i], factor);
      highest = now;
    }
    total = fused(total, factor, shared_sum);
    take_weights(n);
    for (uint i = 0u; i < kDimsOfLane; ++i) {
      uint dim = lane + i * 64u;
      if (dim < head_dim) out_of[i] = with_chunk(out_of[i], dim, n);
    }
  }
  uint at = (row * max_splits + split) * heads_of_row + first_head + head;
  for (uint i = 0u; i < kDimsOfLane; ++i) {
    uint dim = lane + i * 64u;
    if (dim < head_dim) sums[at * head_dim + dim] = out_of[i];
  }
  if (lane == 0u) states[at] = vec2(highest, total);
}
