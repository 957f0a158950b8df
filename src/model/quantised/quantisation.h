// SPDX-License-Identifier: Apache-2.0
// The quantisation of the matrices of a Hugging Face directory, by config.json's
// quantization_config.
#ifndef OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_
#define OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace outrider {

// Forms of a matrix (n_rows, k) whose inputs are in n_groups groups of `group`. An int32 holds
// eight 4-bit codes, the first in the lowest bits.
struct Quantisation {
  enum class Form {
    // GPTQ (Frantar et al. 2023) in AutoGPTQ's layout. w = scale * (code - zero).
    //   qweight  int32 (k / 8, n_rows)
    //   qzeros   int32 (n_groups, n_rows / 8); the first version subtracts one from each code
    //   scales   (n_groups, n_rows)
    //   g_idx    int32 (k): each input's group; optional
    gptq,
    // AWQ (Lin et al. 2024) in AutoAWQ's "gemm" layout. A word holds eight rows in the order 0, 2,
    // 4, 6, 1, 3, 5, 7. w as GPTQ's.
    //   qweight  int32 (k, n_rows / 8)
    //   qzeros   int32 (n_groups, n_rows / 8)
    //   scales   (n_groups, n_rows)
    awq,
    // compressed-tensors "pack-quantized". w = scale * (code - zero); the default zero is 8.
    //   weight_packed      int32 (n_rows, k / 8)
    //   weight_scale       (n_rows, n_groups)
    //   weight_zero_point  int32 (n_rows / 8, n_groups); optional
    //   weight_g_idx       as g_idx
    packed,
    // compressed-tensors "int-quantized" and "naive-quantized".
    //   weight        int8 (n_rows, k)
    //   weight_scale  (n_rows, 1), or one number
    int8,
    // compressed-tensors "float-quantized": as int8, with FP8 numbers (E4M3), or in blocks:
    //   weight_scale  (n_rows / block_rows, k / block_columns), both rounded up
    fp8,
    // DeepSeek's in blocks and Ministral 3's with one scale: as fp8, except for the name. Weights
    // are multiplied by the scale, despite its name.
    //   weight_scale_inv
    fp8_inverse,
    // gpt-oss' experts: two tensors for all of a layer (mxfp4_blocks.h). Single matrices are plain.
    mxfp4,
  };
  Form form = Form::gptq;
  int group = 0;               // inputs that share a scale; 0: a whole row
  bool zeros_less_one = true;  // gptq: the stored zeros
  int block_rows = 0;          // fp8, fp8_inverse; both 0: no blocks
  int block_columns = 0;
};

// Reads it from a directory's config.json (`file`, for messages); empty if matrices are plain.
// Throws Error with key, method and the supported values for any other method, version or number of
// bits.
std::optional<Quantisation> read_quantisation(const nlohmann::json& config,
                                              const std::filesystem::path& file);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_
