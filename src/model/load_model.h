// SPDX-License-Identifier: Apache-2.0
// Loads a model from a path.
#ifndef OUTRIDER_MODEL_LOAD_MODEL_H_
#define OUTRIDER_MODEL_LOAD_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files/file_folder.h"
#include "device/device.h"
#include "io/tensor_source.h"
#include "kernels/table.h"
#include "model/language_model.h"
#include "model/ranks/communicator.h"
#include "model/weight_loader.h"

namespace outrider {

class DecoderModel;

struct LoadOptions {
  // Empty: as stored, without loss. F16 widens to f32; Q8_0 is int8, Q4_0 and Q4_1 are int4; GGUF's
  // other quantised types keep their form.
  std::optional<kernels::WeightKind> weights = std::nullopt;
  std::optional<kernels::KvKind> kv = std::nullopt;  // empty: f32 for f32 weights, otherwise bf16
  // Limit in bytes for keys and values of all sequences of the model together: a pass that needs
  // more throws Error. 0: no limit.
  std::uint64_t kv_memory_bytes = 0;
  // Experts stay in their file, and those in use are packed into expert_memory_bytes; 0: half of
  // the machine's memory (base/memory/machine_memory.h). Ignored for models without experts.
  bool experts_in_file = false;
  std::uint64_t expert_memory_bytes = 0;
  const kernels::KernelTable* table = nullptr;  // null: choose_kernels()
  // Where passes run (run_on_device.h), on the thread that calls the model; null: on the processor.
  std::shared_ptr<device::Device> device = nullptr;
  std::string device_name = {};  // for messages
  int n_threads = 0;             // 0: default_threads()
  // The processes that hold the model together, including this one; null, or a single one: this
  // process alone.
  std::shared_ptr<Communicator> ranks = nullptr;
  // Called repeatedly from the loading thread with the share done, 0..1.
  std::function<void(double)> progress = {};
};

// Throws Error unless there is a directory with a config.json, or a GGUF file. load_model checks
// this first. This function is for callers that read other files of the model before.
void require_model(const std::filesystem::path& path);

// The type of weights with the name "f32", "bf16", "int8" or "int4"; empty for other names.
std::optional<kernels::WeightKind> weight_kind_named(std::string_view name);

// The options that concern weights, with all but their type resolved. Throws UsageError on an
// invalid number of threads.
WeightOptions make_weight_options(const LoadOptions& options);

// The cache's type for weights of these types.
kernels::KvKind kv_kind(const LoadOptions& options, bool all_f32);
// The cache's limit, as for PagePool.
std::size_t max_cache_bytes(const LoadOptions& options);

// PATH: a Hugging Face directory or a GGUF file. Throws Error with the file, tensor or key, what
// was expected and what was found. With several ranks, rank 0 calls this while the others call
// follow_model. All of them throw Error if they differ in program, kernels, weights or options, or
// if one of them fails.
std::unique_ptr<LanguageModel> load_model(const std::filesystem::path& path,
                                          const LoadOptions& options = {});

// A model in Hugging Face's form whose small files are in the folder. The tensors' bytes must live
// for the call only: what the model reads later is copied. Throws as the other overload, and
// UsageError for experts_in_file.
std::unique_ptr<LanguageModel> load_model(const FileFolder& folder,
                                          std::unique_ptr<TensorSource> borrowed,
                                          const LoadOptions& options);

// The same as a decoder, on any rank: the whole model, or this rank's part of it, for LeadingModel
// or follow_rank.
std::unique_ptr<DecoderModel> load_part(const std::filesystem::path& path,
                                        const LoadOptions& options);

// For every rank but 0: loads its part, runs it as rank 0 commands, and returns when rank 0 has
// ended. Throws as load_model, and if another rank is lost.
void follow_model(const std::filesystem::path& path, const LoadOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_MODEL_H_
