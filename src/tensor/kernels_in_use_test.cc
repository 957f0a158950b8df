// SPDX-License-Identifier: Apache-2.0
#include "tensor/kernels_in_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "kernels/dispatch.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Sets OUTRIDER_KERNELS for one test and restores it afterwards.
class Forced {
 public:
  explicit Forced(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    if (value == nullptr) {
      unsetenv(kName);
    } else {
      setenv(kName, value, 1);
    }
  }
  Forced(const Forced&) = delete;
  Forced& operator=(const Forced&) = delete;
  ~Forced() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }

 private:
  static constexpr const char* kName = "OUTRIDER_KERNELS";
  std::optional<std::string> before_;
};

std::string refusal(const char* name) {
  try {
    choose_kernels(name);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ChooseKernels, TakesTheFastestUnlessTold) {
  const Forced none(nullptr);
  EXPECT_EQ(&choose_kernels(), &kernels::best_table());
  EXPECT_STREQ(choose_kernels("scalar").name, "scalar");
}

TEST(ChooseKernels, TheEnvironmentForcesAndANameGoesBeforeIt) {
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    if (!kernels::is_supported(*table)) continue;
    const Forced forced(table->name);
    EXPECT_EQ(&choose_kernels(), table);
    EXPECT_STREQ(choose_kernels("scalar").name, "scalar");
  }
}

TEST(ChooseKernels, UnknownNamesGetAListOfTheKnown) {
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    EXPECT_THAT(refusal("sse9"), AllOf(HasSubstr("sse9"), HasSubstr(table->name)));
  }
  const Forced forced("nonsense");
  EXPECT_THAT(refusal(""), HasSubstr("nonsense"));
  EXPECT_THROW(choose_kernels(std::string_view("scalar\0x", 8)), UsageError);
}

TEST(ChooseKernels, RefusesWhatTheMachineCannotRun) {
  bool any = false;
  for (const kernels::KernelTable* table : kernels::compiled_tables()) {
    if (kernels::is_supported(*table)) continue;
    any = true;
    EXPECT_THAT(refusal(table->name), HasSubstr("not on this machine"));
  }
  if (!any) GTEST_SKIP() << "this machine runs every compiled table";
}

}  // namespace
}  // namespace outrider
