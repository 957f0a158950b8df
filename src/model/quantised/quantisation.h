// How the matrices of a Hugging Face directory are quantised: what config.json's
// quantization_config says.
#ifndef OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_
#define OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

namespace outrider {

// Of a matrix (n_rows, k) whose inputs are in groups of `group`, n_groups of them. int32 hold eight
// codes of four bits, the first in the lowest ones.
struct Quantisation {
  enum class Form {
    // GPTQ (Frantar et al. 2023), AutoGPTQ's layout: "qweight" int32 (k / 8, n_rows), "qzeros"
    // int32
    // (n_groups, n_rows / 8), less by one in the first version, "scales" (n_groups, n_rows), and
    // perhaps "g_idx" int32 (k): each input's group. w = scale * (code - zero).
    gptq,
    // AWQ (Lin et al. 2024), AutoAWQ's "gemm" layout: "qweight" int32 (k, n_rows / 8), "qzeros"
    // int32
    // (n_groups, n_rows / 8), eight rows in the order 0, 2, 4, 6, 1, 3, 5, 7, "scales" as GPTQ's.
    awq,
    // compressed-tensors "pack-quantized": "weight_packed" int32 (n_rows, k / 8), codes less by 8
    // are
    // signed, "weight_scale" (n_rows, n_groups), perhaps "weight_zero_point" int32
    // (n_rows / 8, n_groups) and "weight_g_idx" int32 (k).
    packed,
    // compressed-tensors "int-quantized" and "naive-quantized": "weight" int8 (n_rows, k),
    // "weight_scale" (n_rows, 1) or (1).
    int8,
    // compressed-tensors "float-quantized": "weight" FP8 E4M3 (n_rows, k), "weight_scale" as
    // int8's.
    fp8,
    // DeepSeek's: "weight" FP8 E4M3 (n_rows, k), "weight_scale_inv" (n_rows / rows, k / columns of
    // a
    // block, both rounded up), which the weights are multiplied by, whatever its name says.
    fp8_blocks,
  };
  Form form = Form::gptq;
  int group = 0;               // inputs that share a scale; 0: all of a row
  bool zeros_less_one = true;  // gptq: the stored zeros
  int block_rows = 128;        // fp8_blocks
  int block_columns = 128;
};

// Of a directory's config.json (`file`, for messages); nothing where its matrices are plain. Throws
// Error naming key, method and what is read on any other method, version or number of bits.
std::optional<Quantisation> read_quantisation(const nlohmann::json& config,
                                              const std::filesystem::path& file);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_QUANTISED_QUANTISATION_H_
