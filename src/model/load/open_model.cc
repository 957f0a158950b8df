// SPDX-License-Identifier: Apache-2.0
#include "model/load/open_model.h"

#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/files/hub_cache.h"
#include "io/gguf/gguf.h"
#include "io/safetensors/safetensors.h"
#include "model/config_section.h"
#include "model/families/registry.h"
#include "model/load/text_part.h"
#include "model/load_model.h"

namespace outrider {

OpenedModel open_model(const std::filesystem::path& given) {
  require_model(given);
  const std::filesystem::path path = without_hub_cache(given);
  if (std::error_code ignored; std::filesystem::is_directory(path, ignored)) {
    return open_model(FileFolder(path), [&path] { return open_safetensors_directory(path); });
  }
  std::unique_ptr<GgufFile> file = open_gguf(path);
  std::unique_ptr<const Family> family = read_family(*file);
  return {std::move(family), std::move(file), NamingScheme::gguf};
}

OpenedModel open_model(const FileFolder& folder,
                       const std::function<std::unique_ptr<TensorSource>()>& open_source) {
  constexpr const char* kConfig = "config.json";
  std::unique_ptr<const Family> family = read_family(folder);
  std::unique_ptr<TensorSource> source = open_source();
  const nlohmann::json config = parse_config(folder, kConfig);
  const std::filesystem::path file = folder.place(kConfig);
  const std::optional<nlohmann::json> text = text_config_of(config, file);
  if (text) source = open_text_part(std::move(source));
  return {std::move(family), std::move(source), NamingScheme::hugging_face,
          read_quantisation(text ? *text : config, file)};
}

}  // namespace outrider
