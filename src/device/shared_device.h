// SPDX-License-Identifier: Apache-2.0
// One opened device for all models of a process that name it: a target and its drafter, the models
// of a server. Its kernels are compiled and tried once, and it has one queue.
#ifndef OUTRIDER_DEVICE_SHARED_DEVICE_H_
#define OUTRIDER_DEVICE_SHARED_DEVICE_H_

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "device/device.h"

namespace outrider::device {

// A device for several threads, which take turns: one call at a time reaches the given one. Buffers
// and programs may be destroyed by any thread, and may outlive the returned handle.
std::shared_ptr<Device> share(std::unique_ptr<Device> device);

// The shared devices of a process by their names. Thread-safe.
class SharedDevices {
 public:
  using Open = std::function<std::unique_ptr<Device>()>;

  // The device of that name, if one is in use and not lost. Otherwise one that `open` opens; if
  // that throws, nothing has changed. Of several threads that ask at the same time, one opens it.
  std::shared_ptr<Device> get(const std::string& name, const Open& open);

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Device>> devices_;
};

}  // namespace outrider::device

#endif  // OUTRIDER_DEVICE_SHARED_DEVICE_H_
