// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/atomic_file.h"
#include "outrider/error.h"
#include "vocabulary_training/train_vocabulary.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kModel = "tokenizer.model";

[[noreturn]] void fail(const fs::path& path, int error) {
  throw Error("write tokenizer", path.string(), std::strerror(error));
}

// A partial directory beside its final place; removed unless moved there.
class DirectoryInTheMaking {
 public:
  explicit DirectoryInTheMaking(const fs::path& target) : target_(target), path_(target) {
    path_ += fmt::format(".{}.partial", ::getpid());
    std::error_code error;
    if (!fs::create_directory(path_, error)) fail(path_, error ? error.value() : EEXIST);
  }
  DirectoryInTheMaking(const DirectoryInTheMaking&) = delete;
  DirectoryInTheMaking& operator=(const DirectoryInTheMaking&) = delete;
  ~DirectoryInTheMaking() {
    std::error_code ignored;
    if (!moved_) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  void move_to_target() {
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, errno);
    moved_ = true;
  }

 private:
  fs::path target_;
  fs::path path_;
  bool moved_ = false;
};

}  // namespace

VocabularyDirectory::VocabularyDirectory(const fs::path& path, const Options& options)
    : path_(fs::absolute(path).lexically_normal()), options_(options) {
  if (!path_.has_filename() && path_.has_relative_path()) path_ = path_.parent_path();
  std::error_code ignored;
  fs::path existing = path_;  // the nearest existing directory
  while (!fs::exists(fs::symlink_status(existing, ignored)) && existing.has_relative_path()) {
    existing = existing.parent_path();
  }
  if (!fs::is_directory(existing, ignored)) fail(existing, ENOTDIR);
  if (::access(existing.c_str(), W_OK | X_OK) != 0) fail(existing, errno);
  if (options.overwrite) return;
  for (const char* const name : {kTokenizer, kConfig, kModel}) {
    if (fs::exists(fs::symlink_status(path_ / name, ignored))) {
      throw Error("write tokenizer", path_.string(), "a directory without a tokenizer (or --force)",
                  name);
    }
  }
}

void VocabularyDirectory::write(const TrainedVocabulary& vocabulary) const {
  // A directory counts as a tokenizer once it has a tokenizer.json, so that is written last.
  std::vector<std::pair<const char*, std::string_view>> files;
  files.emplace_back(kConfig, vocabulary.tokenizer_config_json);
  if (options_.keep_model) files.emplace_back(kModel, vocabulary.tokenizer_model);
  files.emplace_back(kTokenizer, vocabulary.tokenizer_json);

  std::error_code error;
  if (!fs::is_directory(path_)) {
    fs::create_directories(path_.parent_path(), error);
    if (error) fail(path_.parent_path(), error.value());
    DirectoryInTheMaking made(path_);
    for (const auto& [name, bytes] : files) write_file_atomically(made.path() / name, bytes);
    made.move_to_target();
    return;
  }
  // First writes all of them beside their places, so that a full disk leaves everything unchanged.
  std::vector<std::unique_ptr<AtomicFile>> made;
  for (const auto& [name, bytes] : files) {
    made.push_back(std::make_unique<AtomicFile>(path_ / name));
    made.back()->write(bytes);
  }
  if (!options_.keep_model) fs::remove(path_ / kModel, error);
  if (error) fail(path_ / kModel, error.value());
  for (const auto& file : made) file->commit();
}

}  // namespace outrider
