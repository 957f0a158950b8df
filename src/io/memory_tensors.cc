// SPDX-License-Identifier: Apache-2.0
#include "io/memory_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read tensors";

std::vector<TensorView> checked(std::vector<TensorView> tensors, const std::string& description) {
  for (const TensorView& tensor : tensors) {
    const std::string label = fmt::format("{}: tensor '{}'", description, tensor.name);
    const auto is_negative = [](std::int64_t size) { return size < 0; };
    const bool is_whole = std::none_of(tensor.shape.begin(), tensor.shape.end(), is_negative);
    const auto n_elements = is_whole ? checked_n_elements(tensor.shape) : std::nullopt;
    if (!n_elements) {
      throw Error(kOperation, label, "a shape of sizes from 0 on that can be counted",
                  fmt::format("[{}]", fmt::join(tensor.shape, ", ")));
    }
    if (tensor.type == ElementType::foreign) continue;
    const auto n_bytes = checked_n_bytes(tensor.type, *n_elements);
    if (n_bytes != tensor.data.size()) {
      throw Error(kOperation, label,
                  fmt::format("as many bytes as [{}] of {} take", fmt::join(tensor.shape, ", "),
                              tensor.type_name()),
                  fmt::format("{}", tensor.data.size()));
    }
  }
  return tensors;
}

}  // namespace

std::optional<ElementType> plain_type_named(std::string_view name) {
  constexpr std::array kTypes = {ElementType::f32,    ElementType::f16, ElementType::bf16,
                                 ElementType::f64,    ElementType::i8,  ElementType::i16,
                                 ElementType::i32,    ElementType::i64, ElementType::u8,
                                 ElementType::boolean};
  const auto* const type = std::find_if(kTypes.begin(), kTypes.end(),
                                        [name](ElementType one) { return name_of(one) == name; });
  return type == kTypes.end() ? std::nullopt : std::optional(*type);
}

MemoryTensors::MemoryTensors(std::vector<TensorView> tensors, std::string description)
    : description_(std::move(description)),
      table_(checked(std::move(tensors), description_), kOperation, description_) {}

void KeptTensors::keep(TensorView& view) {
  if (view.data.empty()) return;
  const auto is_same = [&view](const Copy& copy) {
    return copy.from.data() == view.data.data() && copy.from.size() == view.data.size();
  };
  auto copy = std::find_if(copies_.begin(), copies_.end(), is_same);
  if (copy == copies_.end()) {
    copies_.push_back({.from = view.data, .bytes = {view.data.begin(), view.data.end()}});
    copy = copies_.end() - 1;
  }
  view.data = copy->bytes;
}

}  // namespace outrider
