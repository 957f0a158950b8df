// From a path to a model ready to run.
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

#include "base/file_folder.h"
#include "device/device.h"
#include "io/tensor_source.h"
#include "kernels/table.h"
#include "model/language_model.h"
#include "model/ranks/communicator.h"
#include "model/weight_loader.h"

namespace outrider {

class DecoderModel;

struct LoadOptions {
  // Empty: as stored, without loss. F16 widens to f32; Q8_0 is int8, Q4_0 and Q4_1 are int4;
  // GGUF's other quantised types stay what they are.
  std::optional<kernels::WeightKind> weights = std::nullopt;
  std::optional<kernels::KvKind> kv = std::nullopt;  // empty: f32 for f32 weights, else bf16
  // Keys and values of all sequences of the model together, at most so many bytes: passes that need
  // more throw Error. 0: no limit.
  std::uint64_t kv_memory_bytes = 0;
  // Experts stay in their file; those in use are packed into so much memory, 0: half of what the
  // machine has (base/machine_memory.h). Of other models it says nothing.
  bool experts_in_file = false;
  std::uint64_t expert_memory_bytes = 0;
  const kernels::KernelTable* table = nullptr;  // null: choose_kernels()
  // Where passes run (run_on_device.h), on the thread that calls the model; null: on the processor.
  std::shared_ptr<device::Device> device = nullptr;
  std::string device_name = {};  // for messages
  int n_threads = 0;             // 0: default_threads()
  // The processes that hold the model together, this one among them; null, or one: this one alone.
  std::shared_ptr<Communicator> ranks = nullptr;
  // Called from the loading thread with the share done, 0..1, now and then.
  std::function<void(double)> progress = {};
};

// Throws Error unless there is a directory with a config.json, or a GGUF file: what load_model asks
// first, for those who read a model's other files before.
void require_model(const std::filesystem::path& path);

// The kind of weights that goes by "f32", "bf16", "int8" or "int4"; none by other names.
std::optional<kernels::WeightKind> weight_kind_named(std::string_view name);

// What of them concerns weights, with nothing left open but their kind. Throws UsageError on a
// number of threads that cannot be meant.
WeightOptions make_weight_options(const LoadOptions& options);

// The cache's type for weights of these kinds.
kernels::KvKind kv_kind(const LoadOptions& options, bool all_f32);
// And its limit, as PagePool has it.
std::size_t most_cache_bytes(const LoadOptions& options);

// PATH: a Hugging Face directory or a GGUF file. Throws Error naming the file, tensor or key, what
// was expected and what came. With several ranks it is rank 0 who calls this, while the others call
// follow_model; Error, too, where these have not the same program, kernels, weights and options, or
// where one of them fails: all of them throw then.
std::unique_ptr<LanguageModel> load_model(const std::filesystem::path& path,
                                          const LoadOptions& options = {});

// A model of Hugging Face's form whose small files stand in the folder, and whose tensors' bytes
// are there for the call alone: what the model reads of them afterwards is copied. Throws as the
// other; and UsageError for experts that are to stay in a file.
std::unique_ptr<LanguageModel> load_model(const FileFolder& folder,
                                          std::unique_ptr<TensorSource> borrowed,
                                          const LoadOptions& options);

// The same as a decoder, whatever the rank: the whole model, or this rank's part of it, for
// LeadingModel or follow_rank.
std::unique_ptr<DecoderModel> load_part(const std::filesystem::path& path,
                                        const LoadOptions& options);

// Of every other rank than 0: loads its part, runs it as rank 0 says, and returns when that is done
// with the model. Throws as load_model, and where another rank is lost.
void follow_model(const std::filesystem::path& path, const LoadOptions& options);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_LOAD_MODEL_H_
