// SPDX-License-Identifier: Apache-2.0
// A directory that is removed with the object.
#ifndef OUTRIDER_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
#define OUTRIDER_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace outrider::test {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = ::testing::TempDir() + "/outrider_XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_TEMPORARY_DIRECTORY_H_
