// SPDX-License-Identifier: Apache-2.0
#include "train/output/extended_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/files/atomic_file.h"
#include "base/files/mapped_file.h"
#include "io/safetensors/safetensors.h"
#include "outrider/error.h"

namespace outrider::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kOperation = "extend model";
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

void copy_whole(const fs::path& from, const fs::path& to) {
  const MappedFile source(from);
  AtomicFile out(to);
  out.write(source.bytes());
  out.commit();
}

std::vector<fs::path> files_of_weights(const fs::path& directory) {
  if (fs::exists(directory / kSingleFile)) return {directory / kSingleFile};
  std::set<std::string> names;
  const Json index = read_json(directory / kIndexFile);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) {
    throw Error(kOperation, (directory / kIndexFile).string(), "a key 'weight_map'", "none");
  }
  for (const auto& [tensor, file] : map->items()) names.insert(file.get<std::string>());
  std::vector<fs::path> files;
  for (const std::string& name : names) files.push_back(directory / name);
  return files;
}

}  // namespace

void write_extended_directory(const fs::path& from, const fs::path& directory,
                              const std::vector<NamedTensor>& added, ElementType type,
                              const nlohmann::ordered_json& added_keys) {
  fs::create_directories(directory);
  if (fs::exists(directory / kSingleFile)) {
    throw Error(kOperation, directory.string(), "a directory without model.safetensors", "one");
  }
  open_safetensors_directory(from);  // its index, if any, must name existing plain files
  const std::vector<fs::path> files = files_of_weights(from);
  const std::size_t n_shards = files.size() + 1;
  const auto shard_name = [&](std::size_t number) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", number, n_shards);
  };
  Json map = Json::object();
  std::int64_t n_bytes = 0;
  const auto enter = [&](std::size_t number) {
    const auto shard = open_safetensors(directory / shard_name(number));
    for (const TensorView& tensor : shard->tensors()) {
      if (map.contains(tensor.name)) {
        throw Error(kOperation, from.string(), fmt::format("no tensor {} yet", tensor.name), "one");
      }
      map[tensor.name] = shard_name(number);
      n_bytes += static_cast<std::int64_t>(tensor.data.size());
    }
  };
  for (std::size_t i = 0; i < files.size(); ++i) {
    copy_whole(files[i], directory / shard_name(i + 1));
    enter(i + 1);
  }
  write_tensors(directory, shard_name(n_shards), added, type);
  enter(n_shards);

  copy_tokenizer(from, directory);
  copy_file_whole(from / "generation_config.json", directory);
  Json config = read_json(from / "config.json");
  for (const auto& [key, value] : added_keys.items()) config[key] = value;
  write_json(directory, "config.json", config);
  // Written last: without it the directory is not a model yet.
  write_json(directory, kIndexFile,
             {{"metadata", {{"total_size", n_bytes}}}, {"weight_map", std::move(map)}});
}

}  // namespace outrider::train
