// SPDX-License-Identifier: Apache-2.0
// A Vulkan driver that fails as a test demands (vulkan_fault_layer.cc). It needs no Vulkan header:
// tests of programs and servers use it, too.
#ifndef OUTRIDER_TESTS_SUPPORT_VULKAN_FAULTS_H_
#define OUTRIDER_TESTS_SUPPORT_VULKAN_FAULTS_H_

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace outrider::test {

// Sets an environment variable for the life of this object.
class ScopedVariable {
 public:
  ScopedVariable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* const before = std::getenv(name_.c_str())) before_ = before;
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (before_) {
      setenv(name_.c_str(), before_->c_str(), 1);
    } else {
      unsetenv(name_.c_str());
    }
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Vulkan instances created during the life of this object have the layer, and so have programs
// started meanwhile. One thread, and no other instance may be created at the same time.
class VulkanFaults {
 public:
  // Whether this build has the layer.
  static bool are_built() {
#if defined(OUTRIDER_FAULT_LAYERS)
    return std::filesystem::exists(std::filesystem::path(OUTRIDER_FAULT_LAYERS) /
                                   "outrider_faults.json");
#else
    return false;
#endif
  }

  VulkanFaults()
      : file_((directory_.path() / "fault").string()),
        path_("VK_LAYER_PATH", layers() + ":/usr/share/vulkan/explicit_layer.d"),
        layers_("VK_INSTANCE_LAYERS", "VK_LAYER_OUTRIDER_faults"),
        told_("OUTRIDER_FAULT_FILE", file_) {}

  // In the format of vulkan_fault_layer.cc; empty: no fault.
  void set(const std::string& fault) const {
    // In one step: another process may be reading.
    std::ofstream(file_ + ".new") << fault;
    std::filesystem::rename(file_ + ".new", file_);
  }

  // The number of barriers recorded through the layer so far.
  static int n_barriers() {
    void* const layer =
        dlopen((std::filesystem::path(layers()) / "liboutrider_faults.so").c_str(), RTLD_NOW);
    if (layer == nullptr) return -1;
    const auto count = reinterpret_cast<int (*)()>(dlsym(layer, "outrider_fault_layer_barriers"));
    const int n = count == nullptr ? -1 : count();
    dlclose(layer);
    return n;
  }

 private:
  // The folder of the layer. (VK_LAYER_PATH replaces the loader's own, where the validation layer
  // is.)
  static std::string layers() {
#if defined(OUTRIDER_FAULT_LAYERS)
    return OUTRIDER_FAULT_LAYERS;
#else
    return "";
#endif
  }

  TemporaryDirectory directory_;
  std::string file_;
  ScopedVariable path_;
  ScopedVariable layers_;
  ScopedVariable told_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_VULKAN_FAULTS_H_
