#include <fcntl.h>
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

// What is in the making beside what it will replace; removed unless moved there.
class Temporary {
 public:
  explicit Temporary(const fs::path& target) : target_(target), path_(target) {
    path_ += fmt::format(".{}.part", ::getpid());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() {
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

// Creates `path`. Errors name `shown`, the file the user knows of.
void write_file(const fs::path& path, std::string_view bytes, const fs::path& shown) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(shown, errno);
  int error = 0;
  while (error == 0 && !bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) error = errno;
  }
  // Some file systems report a full disk here.
  if (::close(descriptor) != 0 && error == 0) error = errno;
  if (error != 0) fail(shown, error);
}

}  // namespace

VocabularyDirectory::VocabularyDirectory(const fs::path& path, const Options& options)
    : path_(fs::absolute(path).lexically_normal()), options_(options) {
  if (!path_.has_filename() && path_.has_relative_path()) path_ = path_.parent_path();
  std::error_code ignored;
  fs::path existing = path_;  // the nearest that is there
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
  // A directory is a tokenizer from the moment it has a tokenizer.json, so that comes last.
  std::vector<std::pair<const char*, std::string_view>> files;
  files.emplace_back(kConfig, vocabulary.tokenizer_config_json);
  if (options_.keep_model) files.emplace_back(kModel, vocabulary.tokenizer_model);
  files.emplace_back(kTokenizer, vocabulary.tokenizer_json);

  std::error_code error;
  if (!fs::is_directory(path_)) {
    fs::create_directories(path_.parent_path(), error);
    if (error) fail(path_.parent_path(), error.value());
    Temporary made(path_);
    if (!fs::create_directory(made.path(), error)) fail(path_, error ? error.value() : EEXIST);
    for (const auto& [name, bytes] : files) write_file(made.path() / name, bytes, path_ / name);
    made.move_to_target();
    return;
  }
  // First all of them beside their places, so that a full disk leaves everything as it was.
  std::vector<std::unique_ptr<Temporary>> made;
  for (const auto& [name, bytes] : files) {
    made.push_back(std::make_unique<Temporary>(path_ / name));
    write_file(made.back()->path(), bytes, path_ / name);
  }
  if (!options_.keep_model) fs::remove(path_ / kModel, error);
  if (error) fail(path_ / kModel, error.value());
  for (const auto& temporary : made) temporary->move_to_target();
}

}  // namespace outrider
