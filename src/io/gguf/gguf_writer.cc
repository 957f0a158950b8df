// SPDX-License-Identifier: Apache-2.0
#include "io/gguf/gguf_writer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "io/gguf/gguf_types.h"
#include "io/tensor_table.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "write GGUF";
constexpr std::uint32_t kVersion = 3;
constexpr std::size_t kMaxDimensions = 4;

// Little-endian, like this machine (tensor_source.cc).
template <typename Number>
void put(std::string& to, Number number) {
  static_assert(std::is_arithmetic_v<Number>);
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void put_text(std::string& to, std::string_view text) {
  put(to, std::uint64_t{text.size()});
  to += text;
}

std::uint64_t padded(std::uint64_t n_bytes, std::uint64_t alignment) {
  return (n_bytes + alignment - 1) / alignment * alignment;
}

std::uint32_t number_of(const GgufTensor& tensor) {
  const auto* known =
      std::find_if(kGgufTensorTypes.begin(), kGgufTensorTypes.end(),
                   [&](const GgufTensorType& one) { return one.type == tensor.type; });
  if (known == kGgufTensorTypes.end()) {
    throw Error(kOperation, tensor.name, "a type that GGUF has", name_of(tensor.type));
  }
  return known->number;
}

void check_shape(const GgufTensor& tensor) {
  const auto& shape = tensor.shape;
  const bool is_good =
      !shape.empty() && shape.size() <= kMaxDimensions &&
      std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 1; }) &&
      shape.back() % static_cast<std::int64_t>(block_elements(tensor.type)) == 0;
  const std::optional<std::int64_t> n = is_good ? checked_n_elements(shape) : std::nullopt;
  if (!n || !checked_n_bytes(tensor.type, *n)) {
    throw Error(
        kOperation, tensor.name,
        fmt::format("1 to {} sizes, rows of whole {} blocks", kMaxDimensions, name_of(tensor.type)),
        fmt::format("[{}]", fmt::join(shape, ", ")));
  }
}

// Everything before the tensors' bytes, except for the padding.
std::string header_of(std::span<const GgufEntry> entries, std::span<const GgufTensor> tensors,
                      std::uint64_t alignment) {
  std::string header(kGgufMagic);
  put(header, kVersion);
  put(header, std::uint64_t{tensors.size()});
  put(header, std::uint64_t{entries.size()});
  for (const GgufEntry& entry : entries) {
    header.append(reinterpret_cast<const char*>(entry.data()), entry.size());
  }
  std::uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    check_shape(tensor);
    put_text(header, tensor.name);
    put(header, static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      put(header, static_cast<std::uint64_t>(*size));  // innermost first
    }
    put(header, number_of(tensor));
    put(header, offset);
    offset += padded(tensor.n_bytes(), alignment);
  }
  return header;
}

}  // namespace

std::string gguf_entry(std::string_view key, std::uint32_t value) {
  std::string entry;
  put_text(entry, key);
  put(entry, static_cast<std::uint32_t>(GgufValueType::kU32));
  put(entry, value);
  return entry;
}

std::uint64_t GgufTensor::n_bytes() const {
  std::uint64_t n_elements = 1;
  for (const std::int64_t size : shape) n_elements *= static_cast<std::uint64_t>(size);
  return n_elements / block_elements(type) * block_bytes(type);
}

GgufWriter::GgufWriter(const std::filesystem::path& path, std::span<const GgufEntry> entries,
                       std::span<const GgufTensor> tensors, std::uint64_t alignment)
    : file_(path), description_(path.string()), tensors_(tensors), alignment_(alignment) {
  const std::string header = header_of(entries, tensors, alignment);
  std::uint64_t n_bytes = header.size();
  for (const GgufTensor& tensor : tensors) n_bytes += padded(tensor.n_bytes(), alignment);
  file_.reserve(n_bytes);
  append(std::as_bytes(std::span(header)));
  pad();
  start_tensor();
}

void GgufWriter::write(std::span<const std::byte> bytes) {
  if (bytes.size() > n_left_) {
    throw Error(kOperation, description_, fmt::format("at most {} bytes more", n_left_),
                fmt::format("{}", bytes.size()));
  }
  append(bytes);
  n_left_ -= bytes.size();
  if (n_left_ > 0 || bytes.empty()) return;
  pad();
  start_tensor();
}

void GgufWriter::commit() {
  if (n_left_ > 0) {
    throw Error(kOperation, tensors_[next_ - 1].name, "all of its bytes",
                fmt::format("{} too few", n_left_));
  }
  file_.commit();
}

void GgufWriter::append(std::span<const std::byte> bytes) {
  file_.write(bytes);
  n_bytes_ += bytes.size();
}

void GgufWriter::pad() {
  static constexpr std::array<std::byte, 4096> kZeros{};
  const std::uint64_t end = padded(n_bytes_, alignment_);
  while (n_bytes_ < end) {
    append(std::span(kZeros).first(std::min<std::uint64_t>(kZeros.size(), end - n_bytes_)));
  }
}

void GgufWriter::start_tensor() {
  if (next_ < tensors_.size()) n_left_ = tensors_[next_++].n_bytes();
}

}  // namespace outrider
