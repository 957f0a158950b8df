// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <string_view>
#include <utility>

#include "model/quantised/quantised_matrix.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using Form = Quantisation::Form;
using Shape = std::vector<std::int64_t>;

constexpr const char* kOperation = "load weights";

class Finder {
 public:
  Finder(const TensorSource& source, const Quantisation& quantisation, const std::string& name,
         std::int64_t n_rows, std::int64_t k)
      : source_(source), name_(name) {
    found_.quantisation = quantisation;
    found_.n_rows = n_rows;
    found_.k = k;
  }

  QuantisedTensors find() {
    switch (found_.quantisation.form) {
      case Form::gptq:
        find_columns("qweight", {found_.k / kPerWord, found_.n_rows});
        if (found_.codes != nullptr) read_groups("g_idx");
        break;
      case Form::awq:
        find_columns("qweight", {found_.k, found_.n_rows / kPerWord});
        break;
      case Form::packed:
        find_packed();
        break;
      case Form::int8:
      case Form::fp8:
        find_bytes("weight_scale");
        break;
      case Form::fp8_inverse:
        find_bytes("weight_scale_inv");
        break;
      case Form::mxfp4:
        break;
    }
    return std::move(found_);
  }

 private:
  std::string full(std::string_view part) const { return fmt::format("{}.{}", name_, part); }
  bool has(std::string_view part) const { return source_.find(full(part)) != nullptr; }
  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw Error(kOperation, source_.description(), expected, got);
  }

  // Finds a tensor with that shape and one of the `types`, which the message names.
  const TensorView* require(std::string_view part, const Shape& shape,
                            bool (*fits)(const TensorView&), std::string_view types) {
    const std::string name = full(part);
    const TensorView* const view = source_.find(name);
    if (view == nullptr) fail(fmt::format("a tensor {}", name), "none");
    if (view->shape != shape || !fits(*view)) {
      fail(fmt::format("tensor {} of shape ({}) and type {}", name, fmt::join(shape, ", "), types),
           fmt::format("({}) and {}", fmt::join(view->shape, ", "), view->type_name()));
    }
    found_.names.push_back(name);
    return view;
  }
  const TensorView* require_words(std::string_view part, const Shape& shape) {
    return require(
        part, shape, [](const TensorView& view) { return view.type == ElementType::i32; }, "i32");
  }
  const TensorView* require_floats(std::string_view part, const Shape& shape) {
    return require(
        part, shape,
        [](const TensorView& view) {
          return view.type == ElementType::f32 || view.type == ElementType::f16 ||
                 view.type == ElementType::bf16;
        },
        "f32, f16 or bf16");
  }

  // The number of groups of inputs that share a scale.
  std::int64_t n_groups() const {
    const std::int64_t group = found_.quantisation.group > 0 ? found_.quantisation.group : found_.k;
    if (found_.k % group != 0) {
      fail(fmt::format("{} of inputs in groups of {}", name_, group), fmt::format("{}", found_.k));
    }
    return found_.k / group;
  }
  void require_whole_words(std::int64_t size) const {
    if (size % kPerWord == 0) return;
    fail(fmt::format("{} with a multiple of {} where four-bit codes are packed", name_, kPerWord),
         fmt::format("{}", size));
  }

  // AWQ's and GPTQ's layout: one row per group of inputs, with a number per output row.
  void find_columns(std::string_view codes, const Shape& shape) {
    if (!has(codes)) return;
    require_whole_words(found_.k);
    require_whole_words(found_.n_rows);
    const std::int64_t groups = n_groups();
    found_.codes = require_words(codes, shape);
    found_.zeros = require_words("qzeros", {groups, found_.n_rows / kPerWord});
    found_.scales = require_floats("scales", {groups, found_.n_rows});
  }

  void find_packed() {
    if (!has("weight_packed")) return;
    require_whole_words(found_.k);
    const std::int64_t groups = n_groups();
    found_.codes = require_words("weight_packed", {found_.n_rows, found_.k / kPerWord});
    found_.scales = require_floats("weight_scale", {found_.n_rows, groups});
    if (has("weight_zero_point")) {
      require_whole_words(found_.n_rows);
      found_.zeros = require_words("weight_zero_point", {found_.n_rows / kPerWord, groups});
    }
    read_groups("weight_g_idx");
  }

  // One byte per weight; a scale for the matrix, for each row or for each block.
  void find_bytes(const char* scale) {
    if (!has(scale)) return;
    const Quantisation& quantisation = found_.quantisation;
    const bool is_int = quantisation.form == Form::int8;
    found_.codes = require(
        "weight", {found_.n_rows, found_.k},
        is_int ? [](const TensorView& view) { return view.type == ElementType::i8; }
               : [](const TensorView& view) { return view.foreign_type == "F8_E4M3"; },
        is_int ? "i8" : "F8_E4M3");
    const auto n_bytes = static_cast<std::size_t>(found_.n_rows * found_.k);
    if (found_.codes->data.size() < n_bytes) {
      fail(fmt::format("tensor {} of {} bytes", full("weight"), n_bytes),
           fmt::format("{}", found_.codes->data.size()));
    }
    Shape shape = {found_.n_rows, 1};
    if (quantisation.block_rows > 0) {
      const auto blocks = [](std::int64_t n, int of) { return (n + of - 1) / of; };
      shape = {blocks(found_.n_rows, quantisation.block_rows),
               blocks(found_.k, quantisation.block_columns)};
    } else if (const TensorView* view = source_.find(full(scale)); view->n_elements() == 1) {
      shape = view->shape;
    }
    found_.scales = require_floats(scale, shape);
    // A file may give fixed scales for inputs; here each input row has its own scale.
    for (const char* part : {"activation_scale", "input_scale", "input_zero_point"}) {
      if (has(part)) found_.names.push_back(full(part));
    }
  }

  // The group of each input, if rows were quantised in another order ("desc_act", "actorder").
  void read_groups(std::string_view part) {
    if (!has(part)) return;
    const TensorView* const view = require_words(part, {found_.k});
    const std::int64_t groups = n_groups();
    bool in_order = true;
    found_.groups.resize(static_cast<std::size_t>(found_.k));
    std::memcpy(found_.groups.data(), view->data.data(),
                found_.groups.size() * sizeof(std::int32_t));
    for (std::int64_t i = 0; i < found_.k; ++i) {
      const std::int32_t group = found_.groups[static_cast<std::size_t>(i)];
      if (group < 0 || group >= groups) {
        fail(fmt::format("tensor {} of groups 0 to {}", view->name, groups - 1),
             fmt::format("{}", group));
      }
      in_order = in_order && group == i / (found_.k / groups);
    }
    if (in_order) found_.groups.clear();
  }

  const TensorSource& source_;
  const std::string& name_;
  QuantisedTensors found_;
};

}  // namespace

QuantisedTensors find_quantised(const TensorSource& source, const Quantisation& quantisation,
                                const std::string& name, std::int64_t n_rows, std::int64_t k) {
  return Finder(source, quantisation, name, n_rows, k).find();
}

}  // namespace outrider
