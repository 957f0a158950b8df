// SPDX-License-Identifier: Apache-2.0
#include "model/quantised/quantisation.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/config_section.h"

namespace outrider {
namespace {

using Json = nlohmann::json;
using Form = Quantisation::Form;

constexpr const char* kRead =
    "none, awq, gptq, compressed-tensors, fp8 or mxfp4 (or take a GGUF file)";

void require(const ConfigSection& section, const char* key, bool good, std::string_view expected) {
  if (good) return;
  const Json* value = section.find(key);
  section.fail(key, expected, value != nullptr ? ConfigSection::shown(*value) : "no such key");
}

// Groups of 32 and more, powers of two: no published model has others.
int read_group(const ConfigSection& section, const char* key) {
  const int group = section.whole_or(key, -1);
  if (group == -1) return 0;
  require(section, key, group >= 32 && group <= 1 << 20 && (group & (group - 1)) == 0,
          "-1 or a power of two from 32 on");
  return group;
}

Quantisation read_gptq(const ConfigSection& section) {
  require(section, "bits", section.whole("bits") == 4, "4");
  // A newer name of the key is "format".
  const std::string format =
      section.text_or("checkpoint_format", section.text_or("format", "gptq"));
  require(section, "checkpoint_format", format == "gptq" || format == "gptq_v2", "gptq or gptq_v2");
  require(section, "format", section.text_or("format", format) == format, format);
  // Some layers have other bit widths.
  const Json* dynamic = section.find("dynamic");
  require(section, "dynamic", dynamic == nullptr || dynamic->empty(), "empty");
  return {.form = Form::gptq,
          .group = read_group(section, "group_size"),
          .zeros_less_one = format == "gptq"};
}

Quantisation read_awq(const ConfigSection& section) {
  require(section, "bits", section.whole("bits") == 4, "4");
  require(section, "zero_point", section.flag_or("zero_point", true), "true");
  std::string version = section.text_or("version", "gemm");
  for (char& letter : version) letter = static_cast<char>(std::tolower(letter));
  require(section, "version", version == "gemm", "gemm");
  return {.form = Form::awq, .group = read_group(section, "group_size")};
}

void read_block(const ConfigSection& section, const char* key, Quantisation& quantisation) {
  const Json* const block = section.find(key);
  const bool is_pair = block != nullptr && block->is_array() && block->size() == 2;
  require(section, key, is_pair, "two numbers");
  quantisation.block_rows = section.whole(key, block->at(0));
  quantisation.block_columns = section.whole(key, block->at(1));
  require(section, key, quantisation.block_rows > 0 && quantisation.block_columns > 0,
          "two numbers above 0");
}

Quantisation read_fp8(const ConfigSection& section, const Json& json) {
  const std::string format = section.text_or("fmt", "e4m3");
  require(section, "fmt", format == "e4m3", "e4m3");
  const std::string scheme = section.text_or("activation_scheme", "dynamic");
  require(section, "activation_scheme", scheme == "dynamic" || scheme == "static",
          "dynamic or static");
  Quantisation quantisation{.form = Form::fp8_inverse};
  const bool is_whole = json.contains("weight_block_size") && json["weight_block_size"].is_null();
  if (!is_whole) read_block(section, "weight_block_size", quantisation);
  return quantisation;
}

Quantisation read_compressed(const ConfigSection& section) {
  const std::string format = section.text_or("format", "");
  const bool is_packed = format == "pack-quantized";
  const bool is_float = format == "float-quantized";
  require(section, "format",
          is_packed || is_float || format == "int-quantized" || format == "naive-quantized",
          "pack-quantized, int-quantized, naive-quantized or float-quantized");
  // Rotations, other caches and sparse layouts are not supported.
  for (const char* key : {"transform_config", "kv_cache_scheme", "sparsity_config"}) {
    const Json* const value = section.find(key);
    const bool is_dense =
        value != nullptr && value->is_object() && value->value("format", std::string()) == "dense";
    require(section, key, value == nullptr || value->empty() || is_dense, "absent");
  }
  const auto groups = section.section("config_groups");
  const Json* const json = section.find("config_groups");
  require(section, "config_groups", json != nullptr && json->size() == 1,
          "one group (all layers quantised in one way)");
  const auto only = groups->section(json->begin().key().c_str());
  const auto weights = only ? only->section("weights") : std::nullopt;
  if (!weights) groups->fail(json->begin().key(), "an object with weights", "none");
  require(*only, "output_activations", only->find("output_activations") == nullptr, "absent");
  const int bits = is_packed ? 4 : 8;
  require(*weights, "num_bits", weights->whole("num_bits") == bits, fmt::format("{}", bits));
  const std::string type = weights->text_or("type", "int");
  require(*weights, "type", type == (is_float ? "float" : "int"), is_float ? "float" : "int");
  const std::string strategy = weights->text_or("strategy", "channel");
  if (is_packed) {
    require(*weights, "strategy", strategy == "group" || strategy == "channel", "group or channel");
    return {.form = Form::packed, .group = read_group(*weights, "group_size")};
  }
  require(*weights, "symmetric", weights->flag_or("symmetric", true), "true");
  Quantisation quantisation{.form = is_float ? Form::fp8 : Form::int8};
  if (is_float && strategy == "block") {
    read_block(*weights, "block_structure", quantisation);
    return quantisation;
  }
  require(*weights, "strategy", strategy == "channel" || strategy == "tensor",
          is_float ? "channel, tensor or block" : "channel or tensor");
  return quantisation;
}

}  // namespace

std::optional<Quantisation> read_quantisation(const Json& config,
                                              const std::filesystem::path& file) {
  if (!config.is_object()) return std::nullopt;
  const ConfigSection whole(config, file.string());
  // MLX writes its parameters into config.json as well: {"group_size": 64, "bits": 4}.
  if (const Json* mlx = whole.find("quantization");
      mlx != nullptr && mlx->is_object() && mlx->contains("bits")) {
    whole.fail("quantization", kRead, "weights quantised by MLX");
  }
  for (const char* key : {"quantization_config", "compression_config"}) {
    const Json* const value = whole.find(key);
    if (value == nullptr) continue;
    const bool is_named = value->is_object() && value->contains("quant_method") &&
                          value->at("quant_method").is_string();
    if (!is_named) whole.fail(key, kRead, "weights quantised by an unnamed method");
    const ConfigSection section = *whole.section(key);
    const std::string method = section.text_or("quant_method", "");
    if (method == "gptq") return read_gptq(section);
    if (method == "awq") return read_awq(section);
    if (method == "fp8") return read_fp8(section, *value);
    if (method == "mxfp4") return Quantisation{.form = Form::mxfp4};
    if (method == "compressed-tensors") return read_compressed(section);
    whole.fail(key, kRead, fmt::format("weights quantised by {}", method));
  }
  return std::nullopt;
}

}  // namespace outrider
