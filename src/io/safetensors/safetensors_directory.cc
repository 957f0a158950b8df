// SPDX-License-Identifier: Apache-2.0
// A Hugging Face directory of safetensors: one file, or shards and their index.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "io/safetensors/safetensors.h"
#include "io/strict_json.h"
#include "io/tensor_table.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read safetensors index";
constexpr const char* kSingleFile = "model.safetensors";
constexpr const char* kIndexFile = "model.safetensors.index.json";

// {"metadata": anything, "weight_map": {tensor name: shard file, ...}}
class IndexHandler : public StrictJsonHandler {
 public:
  explicit IndexHandler(std::string description)
      : StrictJsonHandler(kOperation, std::move(description)) {}

  const std::map<std::string, std::string>& weight_map() const {
    if (!seen_map_) {
      throw Error(kOperation, description(), "a key 'weight_map'", "none");
    }
    return weight_map_;
  }

  bool null() override { return skip("null"); }
  bool boolean(bool value) override { return skip(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return skip(fmt::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return skip(fmt::to_string(value)); }
  bool number_float(double, const std::string& text) override { return skip(text); }

  bool string(std::string& value) override {
    if (!in_map()) return skip(fmt::format("'{}'", value));
    // A shard must be beside its index: any other name could refer to an unrelated file.
    const bool plain = !value.empty() && value != "." && value != ".." &&
                       value.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
    if (!plain) unexpected(fmt::format("'{}'", value));
    weight_map_[tensor_] = std::move(value);
    return true;
  }

  bool key(std::string& key) override {
    if (in_map()) {
      if (!weight_map_.emplace(key, std::string()).second) unexpected("the tensor twice");
      tensor_ = std::move(key);
    } else if (depth_ == 1) {
      key_ = std::move(key);
      if (key_ == "weight_map" && std::exchange(seen_map_, true)) unexpected("'weight_map' twice");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (in_map()) unexpected("an object");
    ++depth_;
    return true;
  }
  bool start_array(std::size_t) override {
    if (depth_ == 0 || in_map() || (depth_ == 1 && key_ == "weight_map")) unexpected("an array");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return true;
  }

 protected:
  Expectation expected() const override {
    if (in_map()) {
      return {fmt::format("{}: tensor '{}'", description(), tensor_),
              "one name of a file in the same directory"};
    }
    return {description(), "an object with 'weight_map': {tensor: file}"};
  }

 private:
  bool in_map() const { return depth_ == 2 && key_ == "weight_map"; }

  // Skips an irrelevant value, unless the object or the map is expected in its place.
  bool skip(std::string_view got) const {
    if (depth_ == 0 || in_map() || (depth_ == 1 && key_ == "weight_map")) unexpected(got);
    return true;
  }

  std::size_t depth_ = 0;  // open brackets
  std::string key_;        // in the outermost object
  bool seen_map_ = false;
  std::string tensor_;
  std::map<std::string, std::string> weight_map_;
};

// The tensors of several files as one source; the parts own the mappings.
class ShardedSafetensors : public TensorSource {
 public:
  // indexed: the parts' tensors that the index names.
  ShardedSafetensors(std::vector<std::unique_ptr<TensorSource>> parts,
                     std::vector<TensorView> indexed, std::string description)
      : parts_(std::move(parts)),
        description_(std::move(description)),
        table_(std::move(indexed), kOperation, description_) {}

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return description_; }
  void release(const TensorView& tensor) const override {
    for (const auto& part : parts_) {
      const TensorView* const found = part->find(tensor.name);
      if (found != nullptr && found->data.data() == tensor.data.data())
        return part->release(*found);
    }
  }

 private:
  std::vector<std::unique_ptr<TensorSource>> parts_;
  std::string description_;
  TensorTable table_;
};

std::unique_ptr<TensorSource> open_sharded(const std::filesystem::path& directory,
                                           const std::filesystem::path& index_path) {
  const MappedFile index_file(index_path);
  const std::span<const std::byte> bytes = index_file.bytes();
  if (bytes.size() > kLongestJson) {
    throw Error(kOperation, index_path.string(), fmt::format("at most {} bytes", kLongestJson),
                fmt::format("{}", bytes.size()));
  }
  IndexHandler index(index_path.string());
  index.read({reinterpret_cast<const char*>(bytes.data()), bytes.size()});

  std::set<std::string> shards;
  for (const auto& entry : index.weight_map()) shards.insert(entry.second);
  std::vector<std::unique_ptr<TensorSource>> parts;
  std::vector<TensorView> indexed;
  std::map<std::string, std::string> missing = index.weight_map();
  for (const std::string& shard : shards) {
    parts.push_back(open_safetensors(directory / shard));
    for (const TensorView& tensor : parts.back()->tensors()) {
      // Tensors that the index omits or places elsewhere are ignored: tools that edit models leave
      // some behind.
      const auto entry = index.weight_map().find(tensor.name);
      if (entry == index.weight_map().end() || entry->second != shard) continue;
      indexed.push_back(tensor);
      missing.erase(tensor.name);
    }
  }
  if (!missing.empty()) {
    const auto& [tensor, shard] = *missing.begin();
    throw Error(kOperation, (directory / shard).string(),
                fmt::format("the tensor '{}' that the index promises", tensor), "none");
  }
  return std::make_unique<ShardedSafetensors>(std::move(parts), std::move(indexed),
                                              directory.string());
}

}  // namespace

std::unique_ptr<TensorSource> open_safetensors_directory(const std::filesystem::path& directory) {
  if (const auto file = directory / kSingleFile; is_named(file)) {
    return open_safetensors(file);
  }
  if (const auto index = directory / kIndexFile; is_named(index)) {
    return open_sharded(directory, index);
  }
  // Weights pickled by PyTorch: reading them would run code from the file.
  std::string got = "neither";
  for (const char* pickled : {"pytorch_model.bin", "pytorch_model.bin.index.json"}) {
    if (!is_named(directory / pickled)) continue;
    got = fmt::format("{} (pickled weights are not read: save them as safetensors)", pickled);
    break;
  }
  throw Error(kOperation, directory.string(), fmt::format("{} or {}", kSingleFile, kIndexFile),
              got);
}

}  // namespace outrider
