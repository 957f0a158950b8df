// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "io/safetensors/safetensors.h"
#include "io/test_files.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using test::append;
using test::Bytes;
using test::safetensors;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A temporary directory for each test.
class SafetensorsDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() /
                 ("outrider-" + std::to_string(::getpid()) + "-" + test->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const Bytes& bytes) const {
    std::ofstream file(directory_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void write_index(const std::string& text) const {
    write("model.safetensors.index.json", test::to_bytes(text));
  }
  // Writes a file with one f32 tensor of one element.
  void write_shard(const std::string& name, const std::string& tensor, float value) const {
    Bytes data;
    append(data, value);
    write(name,
          safetensors(R"({")" + tensor + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                      data));
  }
  auto opening() const {
    return [this] { open_safetensors_directory(directory_); };
  }
  static auto fails(const std::string& text) { return ThrowsMessage<Error>(HasSubstr(text)); }

  std::filesystem::path directory_;
};

TEST_F(SafetensorsDirectory, ReadsShards) {
  write_shard("one.safetensors", "a", 1);
  write_shard("two.safetensors", "b", 2);
  write_index(R"({"metadata":{"total_size":8,"notes":[{"deep":[null,true,1.5,-1,"x"]}]},
                  "weight_map":{"b":"two.safetensors","a":"one.safetensors"}})");
  const auto source = open_safetensors_directory(directory_);
  EXPECT_EQ(source->tensors().size(), 2u);
  EXPECT_EQ(source->description(), directory_.string());
  for (const auto& want : {std::pair<const char*, float>{"a", 1}, {"b", 2}}) {
    float value = 0;
    ASSERT_NE(source->find(want.first), nullptr);
    decode_rows(*source->find(want.first), 0, 1, {&value, 1});
    EXPECT_EQ(value, want.second);
  }
  EXPECT_EQ(source->find("c"), nullptr);
}

TEST_F(SafetensorsDirectory, ReadsOneFile) {
  write_shard("model.safetensors", "a", 1);
  EXPECT_NE(open_safetensors_directory(directory_)->find("a"), nullptr);
  EXPECT_NE(open_safetensors(directory_ / "model.safetensors")->find("a"), nullptr);
}

TEST_F(SafetensorsDirectory, SaysWhatIsMissing) {
  EXPECT_THAT(opening(),
              fails("expected model.safetensors or model.safetensors.index.json, got neither"));
  write_index(R"({"weight_map":{"a":"one.safetensors"}})");
  EXPECT_THAT(opening(), fails("one.safetensors: expected a readable file, got No such file"));
  write_shard("one.safetensors", "b", 1);
  EXPECT_THAT(opening(),
              fails("one.safetensors: expected the tensor 'a' that the index promises, got none"));
  write_index(R"({"weight_map":{"a":"one.safetensors","b":"one.safetensors"}})");
  EXPECT_THAT(opening(),
              fails("one.safetensors: expected the tensor 'a' that the index promises, got none"));
}

TEST_F(SafetensorsDirectory, TensorsBesideTheIndexDoNoHarm) {
  write("one.safetensors",
        safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                    R"("left over":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                    Bytes(8)));
  write_shard("two.safetensors", "b", 2);
  write_index(R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  const auto source = open_safetensors_directory(directory_);
  EXPECT_EQ(source->tensors().size(), 2u);
  EXPECT_EQ(source->find("left over"), nullptr);
  EXPECT_NE(source->find("a"), nullptr);
}

TEST_F(SafetensorsDirectory, OfATensorInTwoShardsTheIndexedOneCounts) {
  write_shard("one.safetensors", "a", 1);
  write_shard("two.safetensors", "a", 2);
  write_shard("three.safetensors", "b", 3);
  for (const float want : {1.0F, 2.0F}) {
    const std::string shard = want == 1 ? "one" : "two";
    write_index(R"({"weight_map":{"a":")" + shard + R"(.safetensors","b":"three.safetensors"}})");
    float value = 0;
    const auto source = open_safetensors_directory(directory_);
    decode_rows(*source->find("a"), 0, 1, {&value, 1});
    EXPECT_EQ(value, want);
    source->release(*source->find("a"));
  }
}

TEST_F(SafetensorsDirectory, RefusesBadIndexes) {
  write_shard("one.safetensors", "a", 1);
  const std::string deep(100'000, '[');
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected JSON text, got a syntax error"},
      {"[]", "expected an object with 'weight_map': {tensor: file}, got an array"},
      {"3", "got 3"},
      {"{}", "expected a key 'weight_map', got none"},
      {R"({"weight_map":null})", "'weight_map': {tensor: file}, got null"},
      {R"({"weight_map":["a"]})", "got an array"},
      {R"({"weight_map":{},"weight_map":{}})", "got 'weight_map' twice"},
      {R"({"weight_map":{"a":"one.safetensors","a":"one.safetensors"}})", "got the tensor twice"},
      {R"({"weight_map":{"a":1}})",
       "tensor 'a': expected one name of a file in the same directory, got 1"},
      {R"({"weight_map":{"a":{}}})", "got an object"},
      {R"({"weight_map":{"a":[]}})", "got an array"},
      {R"({"weight_map":{"a":""}})", "got ''"},
      {R"({"weight_map":{"a":".."}})", "got '..'"},
      {R"({"weight_map":{"a":"../one.safetensors"}})", "got '../one.safetensors'"},
      {R"({"weight_map":{"a":"/etc/passwd"}})", "got '/etc/passwd'"},
      {R"({"weight_map":{"a":"one\u0000"}})", "got 'one\\x00'"},
      {R"({"metadata":)" + deep, "got a syntax error"},
  };
  for (const auto& bad : cases) {
    SCOPED_TRACE(bad.first.substr(0, 60));
    write_index(bad.first);
    EXPECT_THAT(opening(), fails("[read safetensors index] " + directory_.string()));
    EXPECT_THAT(opening(), fails(bad.second));
  }
}

TEST_F(SafetensorsDirectory, RefusesWhatIsNoFile) {
  std::filesystem::create_directories(directory_ / "model.safetensors");
  EXPECT_THAT(opening(), fails("expected a regular file"));
}

}  // namespace
}  // namespace outrider
