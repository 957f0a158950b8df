// SPDX-License-Identifier: Apache-2.0
// The tables of docs/models.md equal what the registry, the golden models and the readers say. Each
// test renders its table, and on failure shows the text to write.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/blocks/block_formats.h"
#include "io/safetensors/safetensors.h"
#include "model/families/registry.h"
#include "model/quantised/quantised_matrix.h"
#include "tests/support/goldens/golden_models.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::golden_directory;
using test::golden_names;
using test::json_of;

// The common names of a family's models, by model_type.
const std::map<std::string_view, const char*> kModels = {
    {"llama", "Llama 2, 3, 3.1; SmolLM2 and other models of that form"},
    {"qwen2", "Qwen2, Qwen2.5"},
    {"qwen3", "Qwen3, dense"},
    {"qwen3_moe", "Qwen3, mixtures of experts (30B-A3B and others)"},
    {"qwen3_next", "Qwen3-Next"},
    {"qwen3_5_text", "Qwen3.5, Qwen3.6, dense (text)"},
    {"qwen3_5_moe_text", "Qwen3.5, Qwen3.6, mixtures of experts (text)"},
    {"gemma2", "Gemma 2"},
    {"gemma3_text", "Gemma 3, text"},
    {"gemma4_text", "Gemma 4 (E2B, E4B, 31B, 26B-A4B; text)"},
    {"mistral", "Mistral 7B, NeMo, Small; Small 3's text"},
    {"mixtral", "Mixtral"},
    {"ministral3", "Ministral 3, text"},
    {"smollm3", "SmolLM3"},
    {"olmo2", "OLMo 2"},
    {"olmoe", "OLMoE"},
    {"phi3", "Phi-3, Phi-3.5, Phi-4, Phi-4-mini (text)"},
    {"granite", "Granite 3, dense"},
    {"granitemoehybrid", "Granite 4: H (Mamba-2 and attention), and dense"},
    {"nemotron_h", "Nemotron-H; Nemotron Nano 2; Nemotron 3 (Nano, Super)"},
    {"gpt_oss", "gpt-oss (20b, 120b)"},
    {"lfm2", "LFM2, LFM2.5, dense (text)"},
    {"deepseek_v2", "DeepSeek-V2, V2.5, V2-Lite"},
    {"deepseek_v3", "DeepSeek-V3, V3.1, R1; Moonlight"},
    {"kimi_k2", "Kimi K2"},
    {"glm4_moe", "GLM-4.5, 4.6, 4.7, Air"},
    {"glm4_moe_lite", "GLM-4.7-Flash"},
    {"gpt2", "GPT-2"},
    {"gpt_neox", "GPT-NeoX, Pythia"},
    {"t5", "T5, T5 v1.1, Flan-T5 (encoder-decoder)"},
};

// The text between "<!-- name -->" and "<!-- end of name -->".
std::string in_document(const std::string& name) {
  std::ifstream file(fs::path(OUTRIDER_SOURCE_DIR) / "docs" / "models.md");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const std::string before = fmt::format("<!-- {} -->", name);
  const std::size_t begin = text.find(before);
  const std::size_t end = text.find(fmt::format("<!-- end of {} -->", name));
  if (begin == std::string::npos || end == std::string::npos) return "(no such marks)";
  return text.substr(begin + before.size(), end - begin - before.size());
}

void expect_document(const std::string& name, const std::string& expected) {
  EXPECT_TRUE(in_document(name) == expected)
      << "docs/models.md has another text between the marks of \"" << name << "\". It has to be:\n"
      << expected;
}

std::string quoted(const std::vector<std::string>& names) {
  std::vector<std::string> each;
  each.reserve(names.size());
  for (const std::string& name : names) each.push_back(fmt::format("`{}`", name));
  return fmt::format("{}", fmt::join(each, ", "));
}

TEST(ModelsDocument, HasTheFamilies) {
  std::string table =
      "\n| family | `model_type` (config.json) | GGUF architecture | checked on (`tests/golden/`) "
      "| "
      "as GGUF, too |\n|---|---|---|---|---|\n";
  const std::span<const FamilyEntry> all = families();
  for (const FamilyEntry& family : all) {
    const auto is_same = [&](const FamilyEntry& other) {
      return std::string_view(other.model_type) == family.model_type;
    };
    // It has a row already.
    if (&*std::find_if(all.begin(), all.end(), is_same) != &family) continue;
    std::vector<std::string> architectures;
    for (const FamilyEntry& other : all) {
      if (is_same(other) && other.gguf != nullptr) architectures.emplace_back(other.gguf);
    }
    const auto of_family = [&](std::vector<std::string> names) {
      std::erase_if(names, [&](const std::string& name) {
        return json_of(golden_directory(name) / "config.json")["model_type"] != family.model_type;
      });
      return names;
    };
    const std::vector<std::string> goldens = of_family(golden_names());
    const std::vector<std::string> as_gguf = of_family(golden_names("model.gguf"));
    EXPECT_FALSE(goldens.empty()) << family.model_type << " has no golden model";
    ASSERT_TRUE(kModels.contains(family.model_type)) << family.model_type << " has no title here";
    table +=
        fmt::format("| {} | `{}` | {} | {} | {} |\n", kModels.at(family.model_type),
                    family.model_type, quoted(architectures), quoted(goldens), quoted(as_gguf));
  }
  expect_document("families", table);
}

// "groups of 32", "each row", ...: the unit with a scale of its own.
std::string scaled(const Quantisation& quantisation, const QuantisedTensors& tensors) {
  if (quantisation.block_rows > 0) {
    return fmt::format("blocks of {} by {}", quantisation.block_rows, quantisation.block_columns);
  }
  if (quantisation.group > 0) {
    return fmt::format("groups of {}{}", quantisation.group,
                       tensors.groups.empty() ? "" : ", in another order");
  }
  return tensors.scales->n_elements() == 1 ? "a matrix" : "each row";
}

TEST(ModelsDocument, HasTheQuantisedLayouts) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(golden_directory(""))) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("quantised_")) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  std::string table =
      "\n| `quant_method` | layout | a scale for | held as | checked on (`tests/golden/`) |\n"
      "|---|---|---|---|---|\n";
  for (const std::string& name : names) {
    const json config = json_of(golden_directory(name) / "config.json");
    const json& section = config["quantization_config"];
    std::string layout;
    for (const char* key : {"checkpoint_format", "version", "format", "fmt"}) {
      if (section.contains(key)) layout = section[key];
    }
    const Quantisation quantisation = *read_quantisation(config, name);
    const auto source = open_safetensors(golden_directory(name) / "model.safetensors");
    const int width = config["hidden_size"];
    const QuantisedTensors tensors =
        find_quantised(*source, quantisation, "model.layers.0.mlp.up_proj", width, width);
    ASSERT_NE(tensors.codes, nullptr) << name;
    table +=
        fmt::format("| `{}` | {} | {} | {} | `{}` |\n", section["quant_method"].get<std::string>(),
                    layout.empty() ? "" : fmt::format("`{}`", layout),
                    scaled(quantisation, tensors), name_of(native_kind(tensors)), name);
  }
  expect_document("quantised layouts", table);
}

TEST(ModelsDocument, HasTheTypesOfGguf) {
  std::vector<std::string> types;
  const auto add = [&](ElementType type) {
    std::string name(name_of(type));
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
    types.push_back(name);
  };
  for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) add(type);
  for (int code = 0; code < static_cast<int>(ElementType::foreign); ++code) {
    if (find_block_format(static_cast<ElementType>(code)) != nullptr) {
      add(static_cast<ElementType>(code));
    }
  }
  expect_document("types", fmt::format("{}", fmt::join(types, ", ")));
}

}  // namespace
}  // namespace outrider
