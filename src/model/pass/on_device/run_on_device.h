// SPDX-License-Identifier: Apache-2.0
// Runs a list of ops on a device: the list is recorded as steps once per size of pass, and
// submitted for each pass.
#ifndef OUTRIDER_MODEL_PASS_ON_DEVICE_RUN_ON_DEVICE_H_
#define OUTRIDER_MODEL_PASS_ON_DEVICE_RUN_ON_DEVICE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "model/cache/device_page_store.h"
#include "model/config.h"
#include "model/pass/on_device/device_logits.h"
#include "model/pass/on_device/device_memory.h"
#include "model/pass/on_device/device_recorder.h"
#include "model/pass/on_device/device_words.h"
#include "model/pass/op.h"
#include "model/pass/pass_executor.h"
#include "model/pass/schedule.h"

namespace outrider {

// See PassExecutor. Rows have the bits of CpuPass with any kernel table, for weights in int8 and
// int4.
//
// Weights and pages of the cache are in the device's memory. Embeddings of rows are looked up on
// the host and uploaded with the other inputs of a pass. The likeliest token of each row of logits
// is downloaded, and so are requested features; whole rows of logits are downloaded when they are
// read.
class DevicePass final : public PassExecutor {
 public:
  struct Machine {
    std::shared_ptr<device::Device> device;
    std::string name;  // for messages: "--device vulkan:0"
    kernels::KvKind kv = kernels::KvKind::f32;
    std::size_t max_cache_bytes = PagePool::kUnbounded;
  };

  // config and the weights to which the list refers must outlive the pass. Uploads them. Throws
  // UsageError if the list has ops that devices do not support, NoDeviceMemory if the device has
  // too little memory, and Error if its kernels give other bits than the processor's.
  DevicePass(PassList list, const ModelConfig& config, const Machine& machine);

  void prepare(std::span<const TokenBlock> blocks, const ForwardRequest& request) override;
  std::shared_ptr<DistantRows> distant_logits() override;
  void run(const Outputs& outputs) override;
  std::string failure() const override { return machine_.device->failure(); }

  // The number of currently recorded programs, for tests.
  std::size_t n_programs() const { return programs_.size(); }

 private:
  // The program that a pass uses.
  struct Kind {
    DevicePassShape shape;
    bool without_output = false;
    std::vector<int> skip_layers;
    std::vector<int> feature_layers;
    bool operator==(const Kind&) const = default;
  };
  struct Recorded {
    Kind kind;
    DeviceWords words;
    DeviceRows rows;
    std::unique_ptr<device::Program> program;
  };

  std::unique_ptr<PageStore> make_store(std::span<const CacheGroup> groups);
  Recorded& recorded(const Kind& kind);
  void drop_outdated_programs();
  void upload_embeddings();

  Machine machine_;
  Schedules schedules_;
  DevicePageStore* store_ = nullptr;  // owned by cache_
  DeviceWeights weights_;
  DeviceScratch scratch_;
  std::unique_ptr<device::Buffer> word_buffer_;
  std::vector<std::unique_ptr<Recorded>> programs_;
  // The generation with which the programs were recorded.
  std::uint64_t scratch_generation_ = 0;
  std::uint64_t store_generation_ = 0;

  const Recorded* now_ = nullptr;  // of the prepared pass
  // Of the prepared pass; null if no row requests logits.
  std::shared_ptr<DeviceLogits> now_logits_;
  // Of the last pass without skipped layers, and of the last one with some: they are in separate
  // places.
  std::array<std::shared_ptr<DeviceLogits>, 2> last_logits_;
  std::vector<device::BestOfRow> best_;
  std::vector<std::byte> words_;  // reused from pass to pass, as the members below
  std::vector<float> embedded_;
  std::vector<float> features_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_PASS_ON_DEVICE_RUN_ON_DEVICE_H_
