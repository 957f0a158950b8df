// SPDX-License-Identifier: Apache-2.0
#include "outrider/quantise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/files/file_type.h"
#include "io/blocks/block_encoder.h"
#include "io/blocks/block_formats.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_types.h"
#include "io/gguf/gguf_writer.h"
#include "outrider/error.h"
#include "tensor/team.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "quantize";
constexpr std::string_view kFileTypeKey = "general.file_type";
constexpr std::string_view kVersionKey = "general.quantization_version";
// The version of all layouts in io/blocks/block_formats.h.
constexpr std::uint32_t kBlockLayouts = 2;

// Elements per piece: 4 MiB of floats, at most 50 ms on one thread.
constexpr std::int64_t kPiece = 1 << 20;
// Elements per thread at least: enough to make scheduling negligible.
constexpr std::int64_t kMinShare = 1 << 14;

std::string tensor_of(const GgufFile& file, const TensorView& tensor) {
  return fmt::format("{}: tensor '{}'", file.description(), tensor.name);
}

// --- Refusals -----------------------------------------------------------------------------------

std::unique_ptr<GgufFile> open_model(const fs::path& model) {
  if (fs::is_directory(model)) {
    throw Error(kOperation, model.string(),
                "a .gguf file (convert_hf_to_gguf.py of llama.cpp makes one of a directory)",
                "a directory");
  }
  return open_gguf(model);
}

void check_place(const GgufFile& file, const fs::path& out, bool replace) {
  std::error_code unknown;
  if (!fs::exists(out, unknown)) return;
  if (fs::is_directory(out, unknown)) {
    throw Error(kOperation, out.string(), "a place for a file", "a directory");
  }
  for (const fs::path& read : file.files()) {
    if (fs::equivalent(out, read, unknown)) {
      throw Error(kOperation, out.string(), "another file than those that are read", read.string());
    }
  }
  if (!replace) {
    throw Error(kOperation, out.string(), "a place where no file is (or --force)", "one");
  }
}

bool is_blocks(ElementType type) { return find_block_format(type) != nullptr; }

// Throws for impossible requests; returns warnings for doubtful ones.
std::vector<std::string> check_tensors(const GgufFile& file, std::span<const PlannedTensor> planned,
                                       const QuantiseOptions& options) {
  int n_quantised = 0;
  int n_again = 0;
  int n_fallbacks = 0;
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const TensorView& tensor = file.tensors()[i];
    if (tensor.type == ElementType::foreign) {
      throw Error(kOperation, tensor_of(file, tensor), "a type that can be read",
                  tensor.foreign_type);
    }
    n_fallbacks += planned[i].type != planned[i].wanted;
    n_quantised += is_blocks(planned[i].wanted);
    if (planned[i].type == tensor.type || !is_blocks(tensor.type)) continue;
    if (!options.requantise) {
      throw Error(kOperation, tensor_of(file, tensor),
                  fmt::format("f32, f16, bf16 or {} (or --requantize, which adds to the errors "
                              "that the weights have already)",
                              name_of(planned[i].type)),
                  tensor.type_name());
    }
    ++n_again;
  }
  std::vector<std::string> warnings;
  if (n_again > 0) {
    warnings.push_back(
        fmt::format("quantised before: {} of {} matrices, whose errors and the new ones add up",
                    n_again, n_quantised));
  }
  if (n_fallbacks > 0) {
    warnings.push_back(fmt::format(
        "in another type than its place asks for: {} of {} matrices, whose rows are no whole "
        "blocks of that",
        n_fallbacks, n_quantised));
  }
  return warnings;
}

// --- Writing ------------------------------------------------------------------------------------

// The entries of the new file, as views of `file` and of `own`.
std::vector<GgufEntry> entries_of(const GgufFile& file, std::uint32_t file_type,
                                  std::array<std::string, 2>& own) {
  own = {gguf_entry(kFileTypeKey, file_type), gguf_entry(kVersionKey, kBlockLayouts)};
  std::array<bool, 2> is_there{};
  std::vector<GgufEntry> entries;
  for (std::size_t i = 0; i < file.entries().size(); ++i) {
    const std::string& key = file.metadata()[i].first;
    if (key == "split.no" || key == "split.count" || key == "split.tensors.count") continue;
    if (key == kFileTypeKey || key == kVersionKey) {
      const std::size_t which = key == kFileTypeKey ? 0 : 1;
      is_there[which] = true;
      entries.push_back(std::as_bytes(std::span(own[which])));
    } else {
      entries.push_back(file.entries()[i]);
    }
  }
  for (std::size_t which = 0; which < own.size(); ++which) {
    if (!is_there[which]) entries.push_back(std::as_bytes(std::span(own[which])));
  }
  return entries;
}

// Copies and encodes tensors, piece by piece.
class Writing {
 public:
  Writing(const GgufFile& file, GgufWriter& writer, const QuantiseOptions& options)
      : file_(file),
        writer_(writer),
        options_(options),
        n_threads_(options.threads > 0 ? options.threads : default_threads()) {
    for (const TensorView& tensor : file.tensors()) n_bytes_ += tensor.data.size();
  }

  void copy(const TensorView& tensor) {
    constexpr std::size_t kPiece_bytes = std::size_t{kPiece} * sizeof(float);
    for (std::size_t at = 0; at < tensor.data.size(); at += kPiece_bytes) {
      const std::size_t n_bytes = std::min(kPiece_bytes, tensor.data.size() - at);
      writer_.write(tensor.data.subspan(at, n_bytes));
      report(n_bytes);
    }
  }

  void encode(const TensorView& tensor, ElementType type) {
    // Rows are whole blocks of both types, so blocks can be split without regard to rows.
    const auto unit =
        static_cast<std::int64_t>(std::max(block_elements(tensor.type), block_elements(type)));
    const std::int64_t n_units = tensor.n_elements() / unit;
    const TensorView units{tensor.name, tensor.type, {n_units, unit}, tensor.data};
    const std::int64_t n_at_once = std::max<std::int64_t>(1, kPiece / unit);
    for (std::int64_t first = 0; first < n_units; first += n_at_once) {
      const std::int64_t n = std::min(n_at_once, n_units - first);
      const std::optional<std::int64_t> bad = encode_piece(units, first, n, type);
      if (bad) refuse(tensor, first * unit + *bad, type);
      writer_.write(bytes_);
      report(tensor.data.size() / static_cast<std::size_t>(n_units) * static_cast<std::size_t>(n));
    }
  }

 private:
  // Encodes n rows of `units` to bytes_. Returns the piece's first element that cannot be encoded,
  // if any.
  std::optional<std::int64_t> encode_piece(const TensorView& units, std::int64_t first,
                                           std::int64_t n, ElementType type) {
    const std::int64_t unit = units.shape.back();
    const std::size_t n_bytes =
        static_cast<std::size_t>(unit) / block_elements(type) * block_bytes(type);  // of a unit
    values_.resize(static_cast<std::size_t>(n * unit));
    bytes_.resize(static_cast<std::size_t>(n) * n_bytes);
    std::atomic<std::int64_t> first_bad{n * unit};
    run_team(n_threads_, [&](const Team& team) {
      team.parallel_for_dynamic(n, std::max<std::int64_t>(1, kMinShare / unit), [&](Range part) {
        const auto begin = static_cast<std::size_t>(part.begin);
        const auto size = static_cast<std::size_t>(part.end - part.begin);
        const auto of_unit = static_cast<std::size_t>(unit);
        const std::span<float> values = std::span(values_).subspan(begin * of_unit, size * of_unit);
        decode_rows(units, first + part.begin, part.end - part.begin, values);
        const std::size_t bad = first_unencodable(type, values);
        if (bad == values.size()) {
          encode_blocks(type, values, std::span(bytes_).subspan(begin * n_bytes, size * n_bytes));
          return;
        }
        const auto place = part.begin * unit + static_cast<std::int64_t>(bad);
        std::int64_t seen = first_bad.load();
        while (place < seen && !first_bad.compare_exchange_weak(seen, place)) {
        }
      });
    });
    if (first_bad.load() == n * unit) return std::nullopt;
    bad_value_ = values_[static_cast<std::size_t>(first_bad.load())];
    return first_bad.load();
  }

  [[noreturn]] void refuse(const TensorView& tensor, std::int64_t element, ElementType type) const {
    const std::int64_t row = element / tensor.shape.back();
    throw Error(kOperation, tensor_of(file_, tensor),
                std::isfinite(bad_value_) ? fmt::format("numbers of at most {} for {}",
                                                        largest_encodable(type), name_of(type))
                                          : "finite numbers",
                fmt::format("{} in row {}", bad_value_, row));
  }

  void report(std::size_t n_bytes) {
    n_bytes_done_ += n_bytes;
    if (!options_.progress || n_bytes_ == 0) return;
    options_.progress(
        std::min(1.0, static_cast<double>(n_bytes_done_) / static_cast<double>(n_bytes_)));
  }

  const GgufFile& file_;
  GgufWriter& writer_;
  const QuantiseOptions& options_;
  const int n_threads_;
  std::uint64_t n_bytes_ = 0;  // of the model's tensors
  std::uint64_t n_bytes_done_ = 0;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
  float bad_value_ = 0;
};

std::vector<QuantisedShare> shares_of(std::span<const GgufTensor> tensors) {
  std::vector<QuantisedShare> shares;
  for (const GgufTensor& tensor : tensors) {
    const std::string name(name_of(tensor.type));
    auto share = std::find_if(shares.begin(), shares.end(),
                              [&](const QuantisedShare& one) { return one.type == name; });
    if (share == shares.end()) share = shares.insert(shares.end(), {.type = name});
    ++share->n_tensors;
    std::int64_t n_elements = 1;
    for (const std::int64_t size : tensor.shape) n_elements *= size;
    share->n_elements += n_elements;
    share->n_bytes += tensor.n_bytes();
  }
  std::sort(shares.begin(), shares.end(),
            [](const auto& left, const auto& right) { return left.n_bytes > right.n_bytes; });
  return shares;
}

}  // namespace

std::vector<std::string> quantised_file_types() {
  std::vector<std::string> names;
  for (const FileType& type : file_types()) names.emplace_back(type.name);
  return names;
}

QuantiseSummary quantise_file(const fs::path& model, const fs::path& out,
                              const QuantiseOptions& options) {
  const FileType* type = find_file_type(options.type);
  if (type == nullptr) {
    throw UsageError(kOperation, "type",
                     fmt::format("one of {}", fmt::join(quantised_file_types(), ", ")),
                     options.type);
  }
  const std::unique_ptr<GgufFile> file = open_model(model);
  check_place(*file, out, options.replace);
  const std::vector<PlannedTensor> planned = plan_tensors(*type, *file);
  QuantiseSummary summary;
  summary.warnings = check_tensors(*file, planned, options);

  std::vector<GgufTensor> tensors;
  tensors.reserve(planned.size());
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const TensorView& tensor = file->tensors()[i];
    tensors.push_back({tensor.name, planned[i].type, tensor.shape});
    summary.n_bytes_read += tensor.data.size();
  }
  std::array<std::string, 2> own;
  const std::vector<GgufEntry> entries = entries_of(*file, type->number, own);
  const auto alignment = static_cast<std::uint64_t>(
      file->integer(kGgufAlignmentKey).value_or(std::int64_t{kDefaultGgufAlignment}));
  GgufWriter writer(out, entries, tensors, alignment);
  Writing writing(*file, writer, options);
  for (std::size_t i = 0; i < planned.size(); ++i) {
    const TensorView& tensor = file->tensors()[i];
    if (planned[i].type == tensor.type) {
      writing.copy(tensor);
    } else {
      writing.encode(tensor, planned[i].type);
    }
    file->release(tensor);
  }
  writer.commit();
  summary.n_bytes = writer.n_bytes();
  summary.shares = shares_of(tensors);
  return summary;
}

}  // namespace outrider
