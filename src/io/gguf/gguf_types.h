// SPDX-License-Identifier: Apache-2.0
// Type numbers of GGUF files, shared by reader and writer.
#ifndef OUTRIDER_IO_GGUF_GGUF_TYPES_H_
#define OUTRIDER_IO_GGUF_GGUF_TYPES_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "io/tensor_source.h"

namespace outrider {

inline constexpr std::string_view kGgufMagic = "GGUF";
inline constexpr std::string_view kGgufAlignmentKey = "general.alignment";
inline constexpr std::uint64_t kDefaultGgufAlignment = 32;  // if that key is absent

enum class GgufValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

struct GgufTensorType {
  std::uint32_t number;
  ElementType type;
};
// The types that can be decoded.
inline constexpr std::array kGgufTensorTypes = {
    GgufTensorType{0, ElementType::f32},     GgufTensorType{1, ElementType::f16},
    GgufTensorType{2, ElementType::q4_0},    GgufTensorType{3, ElementType::q4_1},
    GgufTensorType{6, ElementType::q5_0},    GgufTensorType{7, ElementType::q5_1},
    GgufTensorType{8, ElementType::q8_0},    GgufTensorType{10, ElementType::q2_k},
    GgufTensorType{11, ElementType::q3_k},   GgufTensorType{12, ElementType::q4_k},
    GgufTensorType{13, ElementType::q5_k},   GgufTensorType{14, ElementType::q6_k},
    GgufTensorType{20, ElementType::iq4_nl}, GgufTensorType{23, ElementType::iq4_xs},
    GgufTensorType{24, ElementType::i8},     GgufTensorType{25, ElementType::i16},
    GgufTensorType{26, ElementType::i32},    GgufTensorType{27, ElementType::i64},
    GgufTensorType{28, ElementType::f64},    GgufTensorType{30, ElementType::bf16},
    GgufTensorType{39, ElementType::mxfp4},
};

}  // namespace outrider

#endif  // OUTRIDER_IO_GGUF_GGUF_TYPES_H_
