// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors/safetensors_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/files/atomic_file.h"
#include "base/float16.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Rounds in pieces, since a second copy of a whole embedding would double the memory.
constexpr std::size_t kPiece = 65536;

void write_bf16(AtomicFile& file, std::span<const float> values) {
  std::vector<Bf16> piece;
  while (!values.empty()) {
    const auto part = values.first(std::min(kPiece, values.size()));
    piece.clear();
    for (const float value : part) piece.push_back(to_bf16(value));
    file.write(std::as_bytes(std::span(piece)));
    values = values.subspan(part.size());
  }
}

ElementType type_of(const NamedValues& tensor, ElementType floats) {
  if (!tensor.integers.empty()) return ElementType::i64;
  return tensor.flags.empty() ? floats : ElementType::boolean;
}

std::size_t n_values(const NamedValues& tensor) {
  return tensor.values.size() + tensor.integers.size() + tensor.flags.size();
}

const char* dtype_of(ElementType type) {
  switch (type) {
    case ElementType::i64:
      return "I64";
    case ElementType::boolean:
      return "BOOL";
    case ElementType::f32:
      return "F32";
    default:
      return "BF16";
  }
}

std::vector<const NamedValues*> in_file_order(std::span<const NamedValues> tensors) {
  std::vector<const NamedValues*> order;
  for (const NamedValues& tensor : tensors) order.push_back(&tensor);
  const auto place = [](const NamedValues* tensor) {
    if (!tensor->integers.empty()) return 0;
    return tensor->flags.empty() ? 1 : 2;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const NamedValues* left, const NamedValues* right) {
                     return place(left) < place(right);
                   });
  return order;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const NamedValues> tensors,
                       ElementType type) {
  constexpr const char* kOperation = "write safetensors";
  if (type != ElementType::f32 && type != ElementType::bf16) {
    throw Error(kOperation, path.string(), "type f32 or bf16", name_of(type));
  }
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  std::set<std::string> names;
  std::uint64_t offset = 0;
  const std::vector<const NamedValues*> order = in_file_order(tensors);
  for (const NamedValues* tensor : order) {
    std::int64_t n_elements = 1;
    for (const std::int64_t size : tensor->shape) n_elements *= size;
    if (n_elements != static_cast<std::int64_t>(n_values(*tensor))) {
      throw Error(kOperation, tensor->name, fmt::format("{} values", n_elements),
                  fmt::format("{}", n_values(*tensor)));
    }
    if (!names.insert(tensor->name).second) {
      throw Error(kOperation, tensor->name, "names that differ", "one twice");
    }
    const ElementType stored = type_of(*tensor, type);
    const std::uint64_t end = offset + n_values(*tensor) * block_bytes(stored);
    header[tensor->name] = {
        {"dtype", dtype_of(stored)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data begins on a multiple of eight

  AtomicFile file(path);
  std::string length;
  for (int byte = 0; byte < 8; ++byte) {  // little-endian
    length.push_back(static_cast<char>((std::uint64_t{text.size()} >> (8 * byte)) & 0xff));
  }
  file.write(length);
  file.write(text);
  for (const NamedValues* tensor : order) {
    file.write(std::as_bytes(tensor->integers));
    file.write(std::as_bytes(tensor->flags));
    if (type == ElementType::f32) {
      file.write(std::as_bytes(tensor->values));
    } else {
      write_bf16(file, tensor->values);
    }
  }
  file.commit();
}

}  // namespace outrider
