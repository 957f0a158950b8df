// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/files/hub_cache.h"
#include "base/files/mapped_file.h"
#include "engine/files/model_facts.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/config.h"
#include "model/heads/medusa_heads.h"
#include "outrider/error.h"
#include "outrider/inspect.h"
#include "outrider/tokenizer.h"
#include "tokenizer/formats/gguf_vocabulary.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "inspect";

// A chat template or a vocabulary would hide everything else.
constexpr std::size_t kLongestValue = 80;
constexpr std::size_t kShownElements = 6;

// At most kLongestValue bytes, cut between characters.
std::string shorten(std::string text) {
  if (text.size() <= kLongestValue) return text;
  std::size_t end = kLongestValue;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}... ({} bytes)", text.substr(0, end), text.size());
}

std::string show(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::string>) {
          return shorten(held);
        } else if constexpr (std::is_arithmetic_v<Held>) {
          return fmt::format("{}", held);
        } else {
          std::string text;
          const std::size_t n_shown = std::min(held.size(), kShownElements);
          for (std::size_t index = 0; index < n_shown; ++index) {
            if (index > 0) text += ", ";
            text += fmt::format("{}", typename Held::value_type(held[index]));
          }
          text = shorten(std::move(text));
          if (held.size() > n_shown) text += fmt::format(", ... ({} in all)", held.size());
          return "[" + text + "]";
        }
      },
      value);
}

std::vector<TensorSummary> summarise(const TensorSource& source) {
  std::vector<TensorSummary> tensors;
  for (const TensorView& view : source.tensors()) {
    tensors.push_back({.name = view.name,
                       .type = view.type_name(),
                       .shape = view.shape,
                       .n_bytes = static_cast<std::int64_t>(view.data.size())});
  }
  return tensors;
}

// config.json, one entry per key; nested objects as a.b.
void flatten(const std::string& prefix, const nlohmann::ordered_json& object,
             std::vector<std::pair<std::string, std::string>>& out) {
  for (const auto& [key, value] : object.items()) {
    const std::string name = prefix.empty() ? key : prefix + "." + key;
    if (value.is_object() && !value.empty()) {
      flatten(name, value, out);
    } else if (value.is_string()) {
      out.emplace_back(name, shorten(value.get<std::string>()));
    } else {
      out.emplace_back(name, shorten(value.dump()));
    }
  }
}

std::vector<std::pair<std::string, std::string>> read_config(const fs::path& file) {
  const MappedFile mapped(file);
  const std::string_view text(reinterpret_cast<const char*>(mapped.bytes().data()),
                              mapped.bytes().size());
  nlohmann::ordered_json config;
  try {
    // Real files nest less; deeper ones could exhaust the stack of the code below.
    static constexpr int kDeepest = 32;
    const auto check_depth = [&file](int depth, nlohmann::ordered_json::parse_event_t,
                                     nlohmann::ordered_json&) {
      if (depth > kDeepest) {
        throw Error(kOperation, file.string(), fmt::format("JSON nested at most {} deep", kDeepest),
                    "more");
      }
      return true;
    };
    config = nlohmann::ordered_json::parse(text, check_depth);
  } catch (const Error&) {
    throw;
  } catch (const nlohmann::json::parse_error& error) {
    throw Error(kOperation, file.string(), "JSON text",
                fmt::format("a syntax error at byte {}", error.byte));
  } catch (const std::exception& error) {
    throw Error(kOperation, file.string(), error.what());
  }
  if (!config.is_object()) throw Error(kOperation, file.string(), "an object", config.type_name());
  std::vector<std::pair<std::string, std::string>> metadata;
  flatten("", config, metadata);
  return metadata;
}

// Warnings about a directory's tokenizer and configuration. There are none about what this build
// cannot read: heads have no tokenizer, and the family may be unknown.
std::vector<std::string> directory_warnings(const fs::path& directory) {
  std::vector<std::string> warnings;
  const auto add = [&warnings](const auto& read) {
    try {
      const std::vector<std::string> more = read();
      warnings.insert(warnings.end(), more.begin(), more.end());
    } catch (const Error&) {
    }
  };
  add([&] { return Tokenizer::load(directory)->warnings(); });
  add([&] { return read_config_json(directory).warnings; });
  return warnings;
}

}  // namespace

FileSummary inspect_file(const fs::path& given) {
  const fs::path path = without_hub_cache(given);
  FileSummary summary;
  if (fs::is_directory(path)) {
    summary.format = "safetensors";
    summary.metadata = read_config(path / "config.json");
    const auto source = holds_medusa_heads_alone(path) ? open_safetensors(path / kMedusaFile)
                                                       : open_safetensors_directory(path);
    summary.tensors = summarise(*source);
    summary.facts = model_facts(path, *source);
    summary.warnings = directory_warnings(path);
    return summary;
  }
  if (path.extension() == ".safetensors") {
    summary.format = "safetensors";
    summary.tensors = summarise(*open_safetensors(path));
    return summary;
  }
  const std::unique_ptr<GgufFile> file = open_gguf(path);
  summary.format = "gguf";
  for (const auto& [key, value] : file->metadata()) {
    summary.metadata.emplace_back(key, show(value));
  }
  summary.tensors = summarise(*file);
  summary.facts = model_facts(path, *file);
  summary.warnings = gguf_vocabulary_warnings(*file, path.string());
  return summary;
}

}  // namespace outrider
