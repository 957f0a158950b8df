// SPDX-License-Identifier: Apache-2.0
// Heads in separate files beside a tiny target, and drafters made from them.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_HEAD_FILES_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_HEAD_FILES_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "model/load_model.h"
#include "outrider/error.h"
#include "speculate/registry/drafter_registry.h"
#include "tests/support/models/tiny_heads.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {

// The target of the heads' goldens, in a temporary directory.
class HeadFiles : public ::testing::Test {
 protected:
  HeadFiles() {
    write_hugging_face(golden_target(), target_path());
    target_ = load_model(target_path(), {.n_threads = 1});
  }

  std::filesystem::path target_path() const { return directory_.path() / "target"; }
  std::filesystem::path head_path() const { return directory_.path() / "head"; }

  std::unique_ptr<Drafter> make(const std::string& spec) const {
    return read_drafter(spec).make({.target = target_.get(),
                                    .target_path = target_path(),
                                    .vocabulary_size = target_->config().vocabulary_size,
                                    .load = {.n_threads = 1}});
  }
  std::unique_ptr<Drafter> make_of(const std::string& kind) const {
    return make(kind + ":" + head_path().string());
  }
  // The error's line; empty: no error.
  std::string refusal_of(const std::string& kind) const {
    try {
      (void)make_of(kind);
    } catch (const Error& error) {
      return error.what();
    }
    return {};
  }

  TemporaryDirectory directory_;
  std::unique_ptr<LanguageModel> target_;
};

// Expects one line that contains the part.
inline void expect_refused(const std::string& message, std::string_view part) {
  EXPECT_NE(message.find(part), std::string::npos) << message << "\nexpected: " << part;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_HEAD_FILES_H_
