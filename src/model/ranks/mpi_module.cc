// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/mpi_module.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <string>
#include <system_error>

#include "outrider/error.h"

#ifndef OUTRIDER_LIBDIR
#define OUTRIDER_LIBDIR "lib"
#endif

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "start ranks";
constexpr const char* kFile = "outrider_mpi.so";

// In a build, beside the program; installed, in lib/outrider beside bin.
fs::path find_module() {
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) return {};
  for (const fs::path& place :
       {folder / kFile, folder.parent_path() / OUTRIDER_LIBDIR / "outrider" / kFile}) {
    std::error_code ignored;
    if (fs::is_regular_file(place, ignored)) return place;
  }
  return {};
}

}  // namespace

std::unique_ptr<Transport> start_mpi() {
  const fs::path file = find_module();
  if (file.empty()) {
    throw Error(kOperation, kFile,
                "the MPI module beside the program (scripts/install-deps mpi, then build)", "none");
  }
  // Open MPI's own modules look up its symbols globally.
  void* const module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    const char* const why = ::dlerror();
    throw Error(kOperation, file.string(), why == nullptr ? "cannot be loaded" : why);
  }
  // The number in the name changes with Transport: a module of another build is refused.
  using Start = Transport* (*)(char* problem, std::size_t n_problem);
  const auto start = reinterpret_cast<Start>(::dlsym(module, "outrider_start_mpi_2"));
  if (start == nullptr) {
    throw Error(kOperation, file.string(), "the module of this build", "another file");
  }
  std::array<char, 256> problem{};
  std::unique_ptr<Transport> transport(start(problem.data(), problem.size()));
  if (transport == nullptr) throw Error(kOperation, "MPI", problem.data());
  return transport;
}

}  // namespace outrider
