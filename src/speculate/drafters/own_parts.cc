#include "speculate/drafters/own_parts.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/hub_cache.h"
#include "model/heads/mtp_modules.h"
#include "outrider/spec_description.h"

namespace outrider {
namespace {

constexpr const char* kFree = "suffix";
// Folders that hold heads, by the kind of drafter that reads them. A model has at most one of the
// first two ways to bring MTP modules: behind its own layers or in a folder.
constexpr std::array<const char*, 3> kHeads = {"mtp", "eagle", "medusa"};

std::string head_spec(const std::string& kind, const std::filesystem::path& folder) {
  return kind + ":" + escape_spec_value(folder.string());
}

}  // namespace

std::vector<std::string> own_parts(const std::filesystem::path& target) {
  std::vector<std::string> specs = {kFree};
  const std::filesystem::path path = without_hub_cache(target);
  if (!std::filesystem::is_directory(path)) return specs;
  const bool has_modules = has_mtp_modules(path);
  if (has_modules) specs.emplace_back("mtp");
  for (const std::string kind : kHeads) {
    if (kind == "mtp" && has_modules) continue;
    const std::filesystem::path folder = path / kind;
    if (std::filesystem::is_regular_file(folder / "config.json")) {
      specs.push_back(head_spec(kind, folder));
    }
  }
  return specs;
}

std::vector<std::string> every_own_part() {
  std::vector<std::string> specs = {kFree};
  for (const std::string kind : kHeads) specs.push_back(head_spec(kind, kind));
  return specs;
}

}  // namespace outrider
