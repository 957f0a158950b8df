// SPDX-License-Identifier: Apache-2.0
// GGUF files in parts, as llama.cpp's llama-gguf-split writes them: NAME-00001-of-00003.gguf and so
// on. The first part has the metadata, any part tensors.
#include <fmt/format.h>

#include <utility>

#include "io/gguf/gguf.h"
#include "io/gguf/map_gguf.h"
#include "io/tensor_table.h"
#include "outrider/error.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOperation = "read split GGUF";
constexpr std::int64_t kMaxParts = 99999;  // names have five digits

class SplitGguf : public GgufFile {
 public:
  explicit SplitGguf(std::vector<std::unique_ptr<GgufFile>> parts)
      : parts_(std::move(parts)), table_(tensors_of(parts_), kOperation, description()) {}

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return parts_.front()->description(); }
  std::span<const std::pair<std::string, GgufValue>> metadata() const override {
    return parts_.front()->metadata();
  }
  std::span<const std::span<const std::byte>> entries() const override {
    return parts_.front()->entries();
  }
  const GgufValue* find_metadata(std::string_view key) const override {
    return parts_.front()->find_metadata(key);
  }
  std::vector<fs::path> files() const override {
    std::vector<fs::path> all;
    all.reserve(parts_.size());
    for (const auto& part : parts_) all.emplace_back(part->description());
    return all;
  }
  void release(const TensorView& tensor) const override {
    for (const auto& part : parts_) {
      if (const TensorView* found = part->find(tensor.name)) return part->release(*found);
    }
  }

 private:
  static std::vector<TensorView> tensors_of(const std::vector<std::unique_ptr<GgufFile>>& parts) {
    std::vector<TensorView> all;
    for (const auto& part : parts) {
      all.insert(all.end(), part->tensors().begin(), part->tensors().end());
    }
    return all;
  }

  const std::vector<std::unique_ptr<GgufFile>> parts_;
  const TensorTable table_;
};

std::string name_of_part(std::string_view stem, std::int64_t number, std::int64_t n_parts) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, n_parts);
}

}  // namespace

std::unique_ptr<GgufFile> open_gguf(const fs::path& file) {
  std::unique_ptr<GgufFile> first = map_gguf(file);
  const std::int64_t n_parts = first->integer("split.count").value_or(0);
  if (n_parts <= 1) return first;
  if (n_parts > kMaxParts) {
    throw Error(kOperation, file.string(), fmt::format("at most {} parts", kMaxParts),
                fmt::format("{}", n_parts));
  }
  const std::int64_t number = first->integer("split.no").value_or(0) + 1;
  if (number != 1) {
    throw Error(kOperation, file.string(), fmt::format("the first of its {} parts", n_parts),
                fmt::format("part {}", number));
  }
  const std::string name = file.filename().string();
  const std::string ending = name_of_part("", 1, n_parts);
  if (!name.ends_with(ending)) {
    throw Error(kOperation, file.string(),
                fmt::format("a name that ends in {}, by which the other parts are found", ending),
                name);
  }
  const std::string stem = name.substr(0, name.size() - ending.size());
  std::vector<std::unique_ptr<GgufFile>> parts;
  parts.push_back(std::move(first));
  std::size_t n_tensors = parts.front()->tensors().size();
  for (std::int64_t i = 2; i <= n_parts; ++i) {
    const fs::path path = file.parent_path() / name_of_part(stem, i, n_parts);
    parts.push_back(map_gguf(path));
    const GgufFile& part = *parts.back();
    n_tensors += part.tensors().size();
    const std::int64_t number_there = part.integer("split.no").value_or(-1) + 1;
    const std::int64_t count_there = part.integer("split.count").value_or(0);
    if (number_there != i || count_there != n_parts) {
      throw Error(kOperation, path.string(), fmt::format("part {} of {}", i, n_parts),
                  fmt::format("part {} of {}", number_there, count_there));
    }
  }
  const auto promised = parts.front()->integer("split.tensors.count");
  if (promised && *promised != static_cast<std::int64_t>(n_tensors)) {
    throw Error(kOperation, file.string(), fmt::format("{} tensors in all parts", *promised),
                fmt::format("{}", n_tensors));
  }
  return std::make_unique<SplitGguf>(std::move(parts));
}

}  // namespace outrider
