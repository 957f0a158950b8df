// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of bad input: a good tiny model, ways to break a copy of it, and the form of
// every refusal.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_BROKEN_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_BROKEN_MODEL_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "io/test_files.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {

namespace fs = std::filesystem;
using nlohmann::json;
using Words = std::vector<std::string>;

constexpr int kVocabulary = 300;  // of the good model, and its context:
constexpr int kContext = 256;

inline std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_text(const fs::path& file, std::string_view text) {
  std::ofstream stream(file, std::ios::binary | std::ios::trunc);
  stream.write(text.data(), static_cast<std::streamsize>(text.size()));
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + file.string());
}

inline std::string as_text(const test::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A good model in both formats, and a place for broken copies.
class Good {
 public:
  static const Good& get() {
    static const Good good;
    return good;
  }
  fs::path root() const { return folder_.path(); }
  fs::path directory() const { return root() / "good"; }
  fs::path gguf() const { return root() / "good.gguf"; }

 private:
  Good() {
    const TinyModel model = make_tiny_model({});
    write_hugging_face(model, directory());
    write_gguf(model, gguf());
  }
  TemporaryDirectory folder_;
};

// The form of every refusal. (For the limit of the length, see src/base/error.cc.)
inline void expect_refused(const ProgramRun& run, int status, const std::string& names) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_THAT(run.out, ::testing::IsEmpty());
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  EXPECT_LE(run.err.size(), 1000U);
  EXPECT_THAT(run.err, ::testing::StartsWith("outrider: ["));
  EXPECT_THAT(run.err, ::testing::HasSubstr(names));
}

inline Words generate_words(const fs::path& model, const Words& more = {}) {
  Words words = {"generate", "--model", model.string(), "--max-tokens", "4"};
  if (std::find(more.begin(), more.end(), "--prompt-file") == more.end()) {
    words.insert(words.end(), {"--prompt", "ab"});
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Commands that read only a part of a model may succeed on the remaining files, or refuse them.
inline void expect_others_hold(const fs::path& model) {
  for (const Words& words : {Words{"tokenize", "--model", model.string(), "--text", "ab"},
                             Words{"inspect", "--model", model.string()}}) {
    const ProgramRun run = run_program(words);
    if (run.status == 0) {
      EXPECT_THAT(run.err, ::testing::IsEmpty()) << words.front();
    } else {
      SCOPED_TRACE(words.front());
      expect_refused(run, 1, "");
    }
  }
}

// ---- one change to a Hugging Face directory

using Breakage = std::function<void(const fs::path& directory)>;

inline Breakage without(const std::string& file) {
  return [=](const fs::path& directory) { fs::remove(directory / file); };
}
inline Breakage with_text(const std::string& file, const std::string& text) {
  return [=](const fs::path& directory) { write_text(directory / file, text); };
}
// Keeps only the first part of the file.
inline Breakage cut(const std::string& file, double share) {
  return [=](const fs::path& directory) {
    const auto n_bytes = static_cast<double>(fs::file_size(directory / file));
    fs::resize_file(directory / file, static_cast<std::uintmax_t>(n_bytes * share));
  };
}
inline Breakage as_directory(const std::string& file) {
  return [=](const fs::path& directory) {
    fs::remove(directory / file);
    fs::create_directory(directory / file);
  };
}
inline Breakage as_pipe(const std::string& file) {
  return [=](const fs::path& directory) {
    fs::remove(directory / file);
    if (::mkfifo((directory / file).c_str(), 0600) != 0) throw std::runtime_error("no pipe");
  };
}
// Edits a JSON file.
inline Breakage edited(const std::string& file, const std::function<void(json&)>& edit) {
  return [=](const fs::path& directory) {
    json document = json::parse(read_text(directory / file));
    edit(document);
    write_text(directory / file, document.dump());
  };
}
inline Breakage config(const std::string& key, const json& value) {
  return edited("config.json", [=](json& keys) { keys[key] = value; });
}
inline Breakage no_config(const std::string& key) {
  return edited("config.json", [=](json& keys) { keys.erase(key); });
}
inline Breakage tokenizer(const std::function<void(json&)>& edit) {
  return edited("tokenizer.json", edit);
}
// Edits the header of model.safetensors; the data is unchanged.
inline Breakage header(const std::function<void(json&)>& edit) {
  return [=](const fs::path& directory) {
    const fs::path file = directory / "model.safetensors";
    const std::string bytes = read_text(file);
    std::uint64_t n_header = 0;
    std::memcpy(&n_header, bytes.data(), sizeof n_header);
    json document = json::parse(bytes.substr(8, n_header));
    edit(document);
    write_text(file, as_text(test::safetensors(document.dump(),
                                               test::to_bytes(bytes.substr(8 + n_header)))));
  };
}
// Renames the tensors' file to a shard, with this index.
inline Breakage sharded(const json& index) {
  return [=](const fs::path& directory) {
    fs::rename(directory / "model.safetensors", directory / "shard.safetensors");
    write_text(directory / "model.safetensors.index.json", index.dump());
  };
}
inline Breakage broken_weights(float value) {
  return [=](const fs::path& directory) {
    TinyModel model = make_tiny_model({});
    for (float& weight : model.at("model.norm.weight").values) weight = value;
    write_hugging_face(model, directory);
  };
}

inline std::string nested(int depth) {
  const auto n = static_cast<std::size_t>(depth);
  return std::string(n, '[') + std::string(n, ']');
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_BROKEN_MODEL_H_
