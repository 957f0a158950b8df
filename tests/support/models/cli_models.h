// SPDX-License-Identifier: Apache-2.0
// Models for tests of the program, created at run time, and the form of the program's errors.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_CLI_MODELS_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_CLI_MODELS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "tests/support/models/tiny_model.h"
#include "tests/support/models/tiny_pair.h"
#include "tests/support/run_program.h"

namespace outrider::test {

using Words = std::vector<std::string>;

// A folder for this process with a pair of models, a model of very long context and a chat model;
// removed at the end.
class CliModels {
 public:
  static const CliModels& get() {
    static const CliModels models;
    return models;
  }

  std::string target() const { return (root_ / "target").string(); }
  std::string draft() const { return (root_ / "draft").string(); }
  std::string patient() const { return (root_ / "patient").string(); }
  std::string chatty() const { return (root_ / "chatty").string(); }
  std::filesystem::path root() const { return root_; }

 private:
  CliModels()
      : root_(std::filesystem::temp_directory_path() /
              ("outrider_cli_test." + std::to_string(::getpid()))) {
    std::filesystem::create_directories(root_);
    write_tiny_pair(root_);
    TinyShape shape;
    shape.context_length = 1 << 20;  // long enough for any interruption
    write_hugging_face(make_tiny_model(shape), root_ / "patient");
    write_hugging_face(make_tiny_model({}), root_ / "chatty");
    const nlohmann::json config = {
        // Its error contains the tools that it was given.
        {"chat_template",
         "{% if tools %}{{ raise_exception('may call ' + tools[0]['name']) }}{% endif %}"
         "{% for message in messages %}{% if message['role'] == 'tool' %}"
         "{{ raise_exception('returned ' + message['content']) }}{% endif %}{{'<|im_start|>' + "
         "message['role'] + '\n' + "
         "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{{ '<|im_start|>assistant\n' }}"}};
    std::ofstream(root_ / "chatty" / "tokenizer_config.json") << config.dump();
  }
  ~CliModels() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::filesystem::path root_;
};

inline int n_lines(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

// Expects one line on standard error, beginning with the program's name, and nothing on standard
// output.
inline void expect_refused(const ProgramRun& run, int status, const std::string& words) {
  EXPECT_EQ(run.status, status) << run.err;
  EXPECT_THAT(run.out, ::testing::IsEmpty());
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
  EXPECT_THAT(run.err,
              ::testing::AllOf(::testing::StartsWith("outrider: "), ::testing::HasSubstr(words)));
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_CLI_MODELS_H_
