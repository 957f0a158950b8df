// SPDX-License-Identifier: Apache-2.0
#include "train/device.h"

#include <algorithm>
#include <thread>

#include "outrider/error.h"
#include "train/training_device.h"

namespace outrider::train {
namespace {

torch::Device& chosen() {
  static torch::Device device(torch::kCPU);
  return device;
}

}  // namespace

torch::Device training_device() { return chosen(); }

void set_training_device(torch::Device device) { chosen() = device; }

std::string set_training_device(const std::string& name) {
  const bool has_cuda = torch::cuda::is_available();
  if (name == "cuda" && !has_cuda) {
    throw UsageError("read flags", "device", "a CUDA device", "a libtorch that sees none");
  }
  set_training_device(torch::Device(has_cuda && name != "cpu" ? torch::kCUDA : torch::kCPU));
  return training_device().str();
}

Products quickest_products() {
  if (training_device().is_cuda()) return Products::bf16;
#if defined(__x86_64__)
  // Machines with bf16 matrix units have it too.
  return __builtin_cpu_supports("avx512bf16") ? Products::bf16 : Products::full;
#else
  return Products::full;
#endif
}

int set_training_threads(int n_threads) {
  const auto n_processors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  torch::set_num_threads(n_threads > 0 ? n_threads : n_processors);
  return torch::get_num_threads();
}

}  // namespace outrider::train
