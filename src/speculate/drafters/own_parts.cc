// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/own_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>

#include "base/files/hub_cache.h"
#include "model/config_section.h"
#include "model/heads/gemma4_assistant.h"
#include "model/heads/mtp_modules.h"
#include "outrider/error.h"
#include "outrider/spec_description.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kFree = "suffix";
constexpr const char* kModules = "mtp";

bool has_architecture(const json& config, std::string_view part) {
  const auto architectures = config.find("architectures");
  if (architectures == config.end() || !architectures->is_array()) return false;
  return std::any_of(architectures->begin(), architectures->end(), [part](const json& one) {
    return one.is_string() && one.get<std::string>().find(part) != std::string::npos;
  });
}

// Recognises the forms in model/heads/block_head_config.h.
std::string block_head_in(const json& config) {
  const bool is_dspark =
      config.contains("markov_rank") || has_architecture(config, "DSpark") ||
      (config.contains("dflash_config") && config["dflash_config"].contains("markov_rank"));
  return is_dspark ? "dspark" : "dflash";
}

// The kind of drafter that a folder's config.json describes; empty if unknown.
std::string head_in(const fs::path& folder) {
  std::error_code unknown;
  if (!fs::is_regular_file(folder / "config.json", unknown)) return {};
  json config;
  try {
    config = parse_config(folder / "config.json");
  } catch (const Error&) {
    return {};  // a configuration of something else
  }
  if (config.contains("medusa_num_heads")) return "medusa";
  if (is_gemma4_assistant(folder)) return kModules;
  const auto kind = config.find("speculators_model_type");
  if (kind != config.end() && *kind == "dspark") return "dspark";
  if (config.contains("dflash_config") || has_architecture(config, "DFlash") ||
      has_architecture(config, "DSpark") || (kind != config.end() && *kind == "dflash")) {
    return block_head_in(config);
  }
  for (const char* const key :
       {"eagle_version", "eagle_inputs", "eagle_config", "speculators_model_type"}) {
    if (config.contains(key)) return "eagle";
  }
  if (has_architecture(config, "Eagle")) return "eagle";
  return config.contains("num_nextn_predict_layers") ? kModules : "";
}

std::vector<fs::path> folders_of(const fs::path& path) {
  std::vector<fs::path> folders;
  std::error_code unknown;
  fs::directory_iterator entry(path, unknown);
  for (; !unknown && entry != fs::directory_iterator(); entry.increment(unknown)) {
    std::error_code ignored;
    if (entry->is_directory(ignored)) folders.push_back(entry->path());
  }
  std::sort(folders.begin(), folders.end());  // the file system's order is arbitrary
  return folders;
}

std::string head_spec(const std::string& kind, const fs::path& folder) {
  return kind + ":" + escape_spec_value(folder.string());
}

}  // namespace

std::vector<std::string> own_parts(const fs::path& target) {
  std::vector<std::string> specs = {kFree};
  const fs::path path = without_hub_cache(target);
  std::error_code unknown;
  if (!fs::exists(path, unknown)) return specs;
  if (has_mtp_modules(path)) specs.emplace_back(kModules);
  if (!fs::is_directory(path, unknown)) return specs;
  for (const fs::path& folder : folders_of(path)) {
    const std::string kind = head_in(folder);
    if (!kind.empty()) specs.push_back(head_spec(kind, folder));
  }
  return specs;
}

std::vector<std::string> every_own_part() {
  return {kFree,
          head_spec(kModules, kModules),
          head_spec("eagle", "eagle"),
          head_spec("medusa", "medusa"),
          head_spec("dflash", "dflash"),
          head_spec("dspark", "dspark")};
}

}  // namespace outrider
