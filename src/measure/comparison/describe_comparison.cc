// SPDX-License-Identifier: Apache-2.0
// Describes a comparison before anything is measured.
#include <algorithm>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/hub_cache.h"
#include "base/spec.h"
#include "outrider/method_report.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

bool holds_weights(const fs::path& file) {
  const fs::path kind = file.extension();
  return kind == ".safetensors" || kind == ".gguf";
}

// Bytes of a file, or of a directory's weights; 0 if they cannot be read.
std::uint64_t weight_bytes(const fs::path& path) {
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) {
    const std::uintmax_t bytes = fs::file_size(path, unknown);
    return unknown ? 0 : bytes;
  }
  std::uint64_t sum = 0;
  fs::directory_iterator entry(path, unknown);
  for (; !unknown && entry != fs::directory_iterator(); entry.increment(unknown)) {
    std::error_code no_size;
    const std::uintmax_t bytes = entry->file_size(no_size);
    if (!no_size && holds_weights(entry->path())) sum += bytes;
  }
  return sum;
}

void add_file(const fs::path& path, std::vector<ModelFile>& files) {
  const auto same = [&path](const ModelFile& file) { return file.path == path.string(); };
  if (std::any_of(files.begin(), files.end(), same)) return;
  files.push_back({.path = path.string(), .bytes = weight_bytes(without_hub_cache(path))});
}

// The files that a drafter's spec names: its values, or those of its parts' specs.
void add_drafter_files(const std::string& drafter, std::vector<ModelFile>& files) {
  const Spec spec = Spec::parse("drafter", drafter);
  for (const std::string& value : spec.values()) {
    for (const std::string& path : {value, value.substr(value.find(':') + 1)}) {
      std::error_code unknown;
      if (path.empty() || !fs::exists(path, unknown)) continue;
      add_file(path, files);
      break;
    }
  }
}

}  // namespace

MethodComparison describe_comparison(const Model& model, const CompareOptions& options,
                                     std::string version) {
  MethodComparison comparison;
  comparison.version = std::move(version);
  comparison.machine = describe_machine();
  comparison.model = model.summary();
  comparison.options = options;
  comparison.is_chat = !options.raw && !model.tokenizer().chat_template().empty();
  add_file(model.path(), comparison.files);
  for (const ComparedMethod& method : options.methods) {
    add_drafter_files(method.speculation.drafter, comparison.files);
  }
  return comparison;
}

}  // namespace outrider
