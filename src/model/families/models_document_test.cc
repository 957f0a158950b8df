// The tables of docs/models.md are what the registry, the golden models and the readers say: each
// test renders its own, and fails with the text to write where the document has another one.
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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/block_formats.h"
#include "io/safetensors.h"
#include "model/families/registry.h"
#include "model/quantised/quantised_matrix.h"
#include "tests/support/golden_models.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::golden_directory;
using testing::golden_names;
using testing::json_of;

// What people call the models of a family, by its class.
const std::map<std::string_view, const char*> kModels = {
    {"LlamaForCausalLM", "Llama 2, 3, 3.1; SmolLM2 and other models of that form"},
    {"Qwen2ForCausalLM", "Qwen2, Qwen2.5"},
    {"Qwen3ForCausalLM", "Qwen3, dense"},
    {"Qwen3MoeForCausalLM", "Qwen3, mixtures of experts (30B-A3B and others)"},
    {"Qwen3NextForCausalLM", "Qwen3-Next"},
    {"Qwen3_5ForCausalLM", "Qwen3.5, Qwen3.6, dense (text)"},
    {"Qwen3_5MoeForCausalLM", "Qwen3.5, Qwen3.6, mixtures of experts (text)"},
    {"Gemma2ForCausalLM", "Gemma 2"},
    {"Gemma3ForCausalLM", "Gemma 3, text"},
    {"MistralForCausalLM", "Mistral 7B, NeMo, Small; Small 3's text"},
    {"MixtralForCausalLM", "Mixtral"},
    {"Ministral3ForCausalLM", "Ministral 3, text"},
    {"SmolLM3ForCausalLM", "SmolLM3"},
    {"Olmo2ForCausalLM", "OLMo 2"},
    {"OlmoeForCausalLM", "OLMoE"},
    {"Phi3ForCausalLM", "Phi-3, Phi-3.5, Phi-4, Phi-4-mini (text)"},
    {"GraniteForCausalLM", "Granite 3, dense"},
    {"GraniteMoeHybridForCausalLM", "Granite 4: H (Mamba-2 and attention), and dense"},
    {"GptOssForCausalLM", "gpt-oss (20b, 120b)"},
    {"Lfm2ForCausalLM", "LFM2, LFM2.5, dense (text)"},
    {"DeepseekV2ForCausalLM", "DeepSeek-V2, V2.5, V2-Lite"},
    {"DeepseekV3ForCausalLM", "DeepSeek-V3, V3.1, R1; Moonlight"},
    {"GPT2LMHeadModel", "GPT-2"},
    {"GPTNeoXForCausalLM", "GPT-NeoX, Pythia"},
    {"T5ForConditionalGeneration", "T5, T5 v1.1, Flan-T5 (encoder-decoder)"},
};

// Between "<!-- name -->" and "<!-- end of name -->".
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
  for (const FamilyEntry& family : families()) {
    const auto of_family = [&](std::vector<std::string> names) {
      std::erase_if(names, [&](const std::string& name) {
        return json_of(golden_directory(name) / "config.json")["model_type"] != family.model_type;
      });
      return names;
    };
    const std::vector<std::string> goldens = of_family(golden_names());
    const std::vector<std::string> as_gguf = of_family(golden_names("model.gguf"));
    EXPECT_FALSE(goldens.empty()) << family.model_type << " has no golden model";
    ASSERT_TRUE(kModels.contains(family.class_name)) << family.class_name << " has no title here";
    table += fmt::format("| {} | `{}` | {} | {} | {} |\n", kModels.at(family.class_name),
                         family.model_type,
                         family.gguf == nullptr ? "" : fmt::format("`{}`", family.gguf),
                         quoted(goldens), quoted(as_gguf));
  }
  expect_document("families", table);
}

// "groups of 32", "each row", ...: what has a scale of its own.
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
