// SPDX-License-Identifier: Apache-2.0
// scripts/check-cubins on reports and machine code written by the test, with a stand-in for
// nvdisasm.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/temporary_directory.h"

namespace outrider::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

bool is_one_of(const std::string& kernel, std::initializer_list<const char*> parts) {
  for (const char* const part : parts) {
    if (kernel.find(part) != std::string::npos) return true;
  }
  return false;
}

// Instructions of a kernel with which nothing is wrong.
std::string sound_code(const std::string& kernel) {
  std::string code;
  if (is_one_of(kernel, {"product"})) {
    for (int i = 0; i < 8; ++i) code += "IDP.4A.S8.S8 R1, R2, R3, R1 ;\n";
  }
  if (is_one_of(kernel, {"product", "attend", "norm", "merge"})) code += "FFMA R1, R2, R3, R1 ;\n";
  if (is_one_of(kernel, {"store_bf16", "store_int8"})) {
    code += "RED.E.AND.STRONG.GPU [R2.64], R1 ;\nREDG.E.OR.STRONG.GPU [R2.64], R1 ;\n";
  }
  return code + "EXIT ;\n";
}

class CheckCubins : public ::testing::Test {
 protected:
  CheckCubins() {
    std::ifstream entries(OUTRIDER_SOURCE_DIR "/src/device/cuda/kernels/entries.cuh");
    const std::string begin = "  ENTRY(";
    for (std::string line; std::getline(entries, line);) {
      if (!line.starts_with(begin)) continue;
      const std::string name = line.substr(begin.size(), line.find(',') - begin.size());
      codes_["outrider_" + name] = sound_code(name);
      spilled_["outrider_" + name] = 0;
    }
    std::ofstream(folder_.path() / "nvdisasm") << "#!/bin/sh\ncat \"$2\"\n";
    std::filesystem::permissions(folder_.path() / "nvdisasm", std::filesystem::perms::owner_all);
  }

  ProgramRun check() {
    std::ofstream code(folder_.path() / "kernels.sm_80.cubin");
    for (const auto& [name, text] : codes_) {
      code << ".section\t.text." << name << ",\"ax\"\n" << text;
    }
    code.close();
    std::ofstream report(folder_.path() / "kernels.sm_80.cubin.txt");
    for (const auto& [name, n] : spilled_) {
      report << "ptxas info    : Function properties for " << name << "\n    0 bytes stack frame, "
             << n << " bytes spill stores, 0 bytes spill loads\n";
    }
    report.close();
    const char* const script = OUTRIDER_SOURCE_DIR "/scripts/check-cubins";
    return run_program({"NVDISASM=" + (folder_.path() / "nvdisasm").string(), "python3", script,
                        folder_.path().string(), "80"},
                       {.program = "/usr/bin/env"});
  }
  void expect_trouble(const std::string& kernel, const std::string& what) {
    const ProgramRun run = check();
    EXPECT_EQ(run.status, 1) << what;
    EXPECT_THAT(run.out, AllOf(HasSubstr("sm_80 " + kernel + ": "), HasSubstr(what)));
  }

  std::map<std::string, std::string> codes_;  // of each kernel
  std::map<std::string, int> spilled_;

 private:
  TemporaryDirectory folder_;
};

TEST_F(CheckCubins, FindsNothingWhereNothingIsWrong) {
  // A division and a root: their own parts of the code may do what the kernel may not.
  codes_["outrider_layer_norm"] +=
      "MUFU.RSQ R5, R4 ;\nFMUL.FTZ R3, R4, R5 ;\nFMUL.FTZ R5, R5, 0.5 ;\nFFMA R4 ;\nFFMA R3 ;\n"
      ".weak $__internal_0_$__cuda_sm20_sqrt_rn_f32_slowpath\nFADD.FTZ R4, R3, 1 ;\n";
  const ProgramRun run = check();
  EXPECT_EQ(run.status, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr(fmt::format("{} kernels on 1 architectures", codes_.size())));
}

TEST_F(CheckCubins, FindsWhatPtxasSaid) {
  spilled_["outrider_gate_silu"] = 8;
  expect_trouble("outrider_gate_silu", "8 spilled");
  spilled_.erase("outrider_gate_silu");
  expect_trouble("outrider_gate_silu", "not compiled");
  spilled_["outrider_other"] = 0;
  expect_trouble("outrider_other", "not in kernels/entries.cuh");
}

TEST_F(CheckCubins, FindsWrongInstructions) {
  struct Wrong {
    const char* kernel;
    const char* code;  // in the place of what it has
    const char* what;
  };
  const Wrong all[] = {
      {"product_int8_4", "FFMA R1 ;\n", "fewer than a group's 8"},
      {"attend_f32", "FMUL R1 ;\nFADD R1 ;\n", "no FFMA"},
      {"rms_norm", "FCHK P0, R7, R3 ;\nFFMA ;\nFFMA ;\nFFMA ;\nFFMA ;\nFFMA ;\n", "no FFMA"},
      {"apply_rope", "FMUL R1 ;\nFFMA R1, R2, R3, R1 ;\n", "rounded apart"},
      {"add_rows", "UFFMA UR1 ;\n", "rounded apart"},
      {"scale_rows", "FMUL.FTZ R1 ;\n", "subnormal numbers become 0: FMUL.FTZ"},
      {"cap_rows", "FSETP.GT.FTZ.AND P0 ;\n", "subnormal numbers become 0: FSETP.GT.FTZ.AND"},
      {"gate_silu", "MUFU.EX2 R1 ;\n", "MUFU.EX2"},
      {"store_int8", "RED.E.AND.STRONG.GPU [R2.64] ;\n", "no atomic OR"},
      {"store_bf16", "STG.E [R2.64] ;\n", "no atomic AND"},
      {"copy_rows", "LDG.E.128 R4 ;\n", "LDG.E.128: wider"},
      {"move_f32", "STG.E.64.SYS [R2] ;\n", "STG.E.64"},
  };
  for (const Wrong& wrong : all) codes_[std::string("outrider_") + wrong.kernel] = wrong.code;
  const ProgramRun run = check();
  EXPECT_EQ(run.status, 1);
  for (const Wrong& wrong : all) {
    EXPECT_THAT(run.out,
                ContainsRegex(fmt::format("sm_80 outrider_{}: .*{}", wrong.kernel, wrong.what)));
  }
}

}  // namespace
}  // namespace outrider::test
