// SPDX-License-Identifier: Apache-2.0
#include "model/load_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files/hub_cache.h"
#include "base/files/mapped_file.h"
#include "base/memory/machine_memory.h"
#include "io/gguf/gguf.h"
#include "io/memory_tensors.h"
#include "model/cache/page_pool.h"
#include "model/decoder_model.h"
#include "model/load/decoder_weights.h"
#include "model/load/open_model.h"
#include "model/load/other_models.h"
#include "model/pass/expert_memory.h"
#include "model/ranks/agree.h"
#include "model/ranks/column_split.h"
#include "model/ranks/leading_model.h"
#include "model/ranks/share_weights.h"
#include "outrider/error.h"
#include "tensor/kernels_in_use.h"

namespace outrider {
namespace {

// No machine has more; a larger number is probably a typing error, and threads cost memory.
constexpr int kMaxThreads = 1024;

}  // namespace

void require_model(const std::filesystem::path& given) {
  namespace fs = std::filesystem;
  const fs::path path = without_hub_cache(given);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    if (fs::exists(path / "config.json", ignored)) return;
    refuse_other_directory(path);
    throw Error("load model", path.string(),
                "a Hugging Face directory (config.json, *.safetensors) or a .gguf file",
                "a directory without config.json");
  }
  // The name alone does not tell: some are in capitals, and download caches name files by hashes.
  if (path.extension() == ".gguf" || is_gguf(path)) return;
  if (fs::exists(path, ignored)) const MappedFile readable(path);  // throws an Error if unreadable
  const bool is_part = path.extension() == ".safetensors" || path.extension() == ".json";
  throw Error("load model", path.string(), "a Hugging Face directory or a .gguf file",
              !fs::exists(path, ignored) ? "nothing there"
              : is_part                  ? "a file that may be part of such a directory: name that"
                                         : "a file of another kind");
}

std::optional<kernels::WeightKind> weight_kind_named(std::string_view name) {
  if (name == "f32") return kernels::WeightKind::f32;
  if (name == "bf16") return kernels::WeightKind::bf16;
  if (name == "int8") return kernels::WeightKind::int8;
  if (name == "int4") return kernels::WeightKind::int4;
  return std::nullopt;
}

WeightOptions make_weight_options(const LoadOptions& options) {
  if (options.n_threads < 0 || options.n_threads > kMaxThreads) {
    throw UsageError("load model", "threads",
                     fmt::format("1 to {} (0: as many as there are processors)", kMaxThreads),
                     fmt::format("{}", options.n_threads));
  }
  return {.names = NamingScheme::hugging_face,
          .kind = options.weights,
          .quantisation = {},
          .experts_in_file = options.experts_in_file,
          .table = options.table != nullptr ? options.table : &choose_kernels(),
          .n_threads = options.n_threads > 0 ? options.n_threads : default_threads(),
          .progress = options.progress};
}

kernels::KvKind kv_kind(const LoadOptions& options, bool all_f32) {
  return options.kv.value_or(all_f32 ? kernels::KvKind::f32 : kernels::KvKind::bf16);
}

std::size_t max_cache_bytes(const LoadOptions& options) {
  if (options.kv_memory_bytes == 0) return PagePool::kUnbounded;
  return static_cast<std::size_t>(
      std::min<std::uint64_t>(options.kv_memory_bytes, PagePool::kUnbounded));
}

namespace {

// For experts that stay in their file; null if none do.
std::unique_ptr<ExpertMemory> make_expert_memory(DecoderWeights& weights,
                                                 const LoadOptions& options, int n_threads) {
  std::vector<const ExpertMemory::Matrices*> all;
  for (const DecoderLayer& layer : weights.layers) {
    for (const auto* matrices : {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
      if (!matrices->empty()) all.push_back(matrices);
    }
  }
  if (!options.experts_in_file || all.empty()) return nullptr;
  const std::uint64_t max_bytes =
      options.expert_memory_bytes > 0 ? options.expert_memory_bytes : machine_memory() / 2;
  auto memory = std::make_unique<ExpertMemory>(all, max_bytes, n_threads);
  for (DecoderLayer& layer : weights.layers) layer.experts.memory = memory.get();
  return memory;
}

// The ranks' communicator; null for a single process.
Communicator* ranks_of(const LoadOptions& options) {
  return options.ranks != nullptr && options.ranks->n_ranks() > 1 ? options.ranks.get() : nullptr;
}

// Compares what must be equal on all ranks for the bits to be those of one process.
void agree_on(Communicator& ranks, const std::filesystem::path& path, const TensorSource& source,
              const LoadOptions& options, const WeightOptions& weight_options) {
  agree(ranks, {{"build (the program's checksum)", program_checksum()},
                {"kernel table", weight_options.table->name},
                {"model (a checksum of its files)", model_checksum(path, source)},
                {"weights", options.weights ? kernels::name_of(*options.weights) : "as stored"},
                {"kv", options.kv ? name_of(*options.kv) : "by the weights"},
                {"kv memory", fmt::format("{}", options.kv_memory_bytes)},
                {"rank time-out", fmt::format("{:g} s", ranks.agreed_timeout_seconds())}});
}

// Waits until every rank has its part. Returns the number of threads of each rank: they may differ,
// and a measurement must name them.
std::vector<int> meet(Communicator& ranks, int n_threads) {
  std::vector<int> all;
  for (const std::string& text :
       ranks.exchange_texts(fmt::format("{}", n_threads), Communicator::Patience::loading)) {
    int& n = all.emplace_back(0);
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (problem == std::errc() && end == text.data() + text.size() && n > 0) continue;
    throw Error("run ranks", fmt::format("rank {} of {}", all.size() - 1, ranks.n_ranks()),
                "a number of threads", text);
  }
  return all;
}

// A rank's cache limit. --kv-memory applies to the ranks with most key heads; the others get memory
// for the same number of tokens. So all refuse the same pass.
std::size_t cache_bytes_of_rank(const ModelConfig& config, const RankShare& share,
                                std::size_t max_bytes) {
  if (max_bytes == PagePool::kUnbounded) return max_bytes;
  std::int64_t own = 0;
  std::int64_t most = 0;
  for (int rank = 0; rank < share.n_ranks; ++rank) {
    const Range keys =
        share_heads(config.n_heads, config.n_kv_heads, {.rank = rank, .n_ranks = share.n_ranks})
            .keys;
    most = std::max(most, keys.end - keys.begin);
    if (rank == share.rank) own = keys.end - keys.begin;
  }
  return static_cast<std::size_t>(static_cast<unsigned __int128>(max_bytes) *
                                  static_cast<std::uint64_t>(own) /
                                  static_cast<std::uint64_t>(most));
}

// Everything of a model except its source's bytes.
DecoderModel::Parts load_parts(OpenedModel opened, const LoadOptions& options) {
  WeightOptions weight_options = make_weight_options(options);
  weight_options.names = opened.names;
  weight_options.quantisation = opened.quantisation;
  Communicator* const ranks = ranks_of(options);
  if (ranks != nullptr) {
    weight_options.share = RankShare{.rank = ranks->rank(), .n_ranks = ranks->n_ranks()};
  }
  DecoderModel::Parts parts;
  parts.weights = load_decoder_weights(*opened.source, *opened.family, weight_options);
  parts.expert_memory = make_expert_memory(parts.weights, options, weight_options.n_threads);
  parts.machine = {.table = weight_options.table,
                   .kv = kv_kind(options, parts.weights.all_f32),
                   .max_cache_bytes = max_cache_bytes(options),
                   .n_threads = weight_options.n_threads,
                   .ranks = ranks};
  if (weight_options.share) {
    parts.machine.max_cache_bytes = cache_bytes_of_rank(
        opened.family->config(), *weight_options.share, parts.machine.max_cache_bytes);
    parts.machine.cache_limit = fmt::format("rank {}'s part of --kv-memory", ranks->rank());
  }
  parts.device = options.device;
  parts.device_name = options.device_name;
  parts.family = std::move(opened.family);
  parts.source = std::move(opened.source);
  return parts;
}

// Tables are read as stored for as long as the model lives; all other tensors were packed.
std::unique_ptr<TensorSource> copy_tables(DecoderWeights& weights, std::string description) {
  auto kept = std::make_unique<KeptTensors>(std::move(description));
  for (TensorView* const table : {&weights.embedding, &weights.positions,
                                  &weights.layer_inputs.table, &weights.head_as_stored}) {
    kept->keep(*table);
  }
  return kept;
}

// Its exceptions are not reported to other ranks.
std::unique_ptr<DecoderModel> load_unheard(const std::filesystem::path& path,
                                           const LoadOptions& options) {
  // Invalid options are refused before a file is opened.
  const WeightOptions weight_options = make_weight_options(options);
  OpenedModel opened = open_model(path);
  Communicator* const ranks = ranks_of(options);
  if (ranks != nullptr) {
    require_splittable(*opened.family, ranks->n_ranks());
    if (options.experts_in_file) {
      throw UsageError("split model", "experts", "in memory, each on one of the ranks", "mapped");
    }
    agree_on(*ranks, path, *opened.source, options, weight_options);
  }
  auto model = std::make_unique<DecoderModel>(load_parts(std::move(opened), options));
  // After this every rank has its part.
  if (ranks != nullptr) model->set_rank_threads(meet(*ranks, weight_options.n_threads));
  return model;
}

}  // namespace

std::unique_ptr<LanguageModel> load_model(const FileFolder& folder,
                                          std::unique_ptr<TensorSource> borrowed,
                                          const LoadOptions& options) {
  if (options.experts_in_file) {
    throw UsageError("load model", "--experts mapped", "a model in files", "one in memory");
  }
  if (ranks_of(options) != nullptr) {
    throw UsageError("split model", "model", "one in files, which every rank reads",
                     "one in memory");
  }
  (void)make_weight_options(options);
  DecoderModel::Parts parts =
      load_parts(open_model(folder, [&borrowed] { return std::move(borrowed); }), options);
  parts.source = copy_tables(parts.weights, parts.source->description());
  return std::make_unique<DecoderModel>(std::move(parts));
}

std::unique_ptr<DecoderModel> load_part(const std::filesystem::path& path,
                                        const LoadOptions& options) {
  try {
    return load_unheard(path, options);
  } catch (const std::exception& error) {
    if (Communicator* const ranks = ranks_of(options)) ranks->give_up(error.what());
    throw;
  }
}

std::unique_ptr<LanguageModel> load_model(const std::filesystem::path& path,
                                          const LoadOptions& options) {
  std::unique_ptr<DecoderModel> part = load_part(path, options);
  if (ranks_of(options) == nullptr) return part;
  return std::make_unique<LeadingModel>(std::move(part), options.ranks);
}

void follow_model(const std::filesystem::path& path, const LoadOptions& options) {
  const std::unique_ptr<DecoderModel> part = load_part(path, options);
  follow_rank(*part, *options.ranks);
}

}  // namespace outrider
