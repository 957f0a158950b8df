// Which drafters a model comes with.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "outrider/error.h"
#include "outrider/inspect.h"
#include "outrider/tune_drafters.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Configurations of models are a few kilobytes.
constexpr std::size_t kLongest_bytes = 1U << 20;

// What a spec would read as punctuation.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || c == ',' || c == '=') text += '\\';
    text += c;
  }
  return text;
}

// The object of a config.json; another value where there is none.
json config_of(const fs::path& folder) {
  std::ifstream file(folder / "config.json", std::ios::binary);
  std::string text;
  for (char c = 0; text.size() <= kLongest_bytes && file.get(c);) text += c;
  if (text.size() > kLongest_bytes) return {};
  struct TooDeep {};
  constexpr int kDeepest = 64;  // values are dropped by recursion
  const auto check_depth = [](int depth, json::parse_event_t, json&) {
    if (depth > kDeepest) throw TooDeep();
    return true;
  };
  try {
    return json::parse(text, check_depth, /*allow_exceptions=*/false);
  } catch (const TooDeep&) {
    return {};
  }
}

// The kind of drafter that a folder's config.json speaks of; empty: none that is known.
std::string head_in(const fs::path& folder) {
  const json config = config_of(folder);
  if (!config.is_object()) return {};
  if (config.contains("medusa_num_heads")) return "medusa";
  if (config.contains("eagle_version") || config.contains("eagle_inputs")) return "eagle";
  const auto architectures = config.find("architectures");
  if (architectures != config.end() && architectures->is_array()) {
    for (const json& one : *architectures) {
      if (one.is_string() && one.get<std::string>().find("Eagle") != std::string::npos) {
        return "eagle";
      }
    }
  }
  if (config.contains("num_nextn_predict_layers")) return "mtp";
  return {};
}

// Modules among the weights of the model itself.
bool has_modules(const fs::path& path) {
  try {
    const FileSummary summary = inspect_file(path);
    return std::any_of(
        summary.tensors.begin(), summary.tensors.end(),
        [](const TensorSummary& tensor) { return tensor.name.ends_with(".eh_proj.weight"); });
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

std::vector<std::string> drafters_to_try(const Model& model) {
  std::vector<std::string> specs = {"suffix", "ngram", "lookahead"};
  const fs::path& path = model.path();
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return specs;
  if (has_modules(path)) specs.emplace_back("mtp");
  std::vector<fs::path> folders;
  fs::directory_iterator entry(path, unknown);
  for (; !unknown && entry != fs::directory_iterator(); entry.increment(unknown)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());  // as a system lists them is no order
  for (const fs::path& folder : folders) {
    const std::string kind = head_in(folder);
    if (!kind.empty()) specs.push_back(kind + ":" + escaped(folder.string()));
  }
  return specs;
}

}  // namespace outrider
