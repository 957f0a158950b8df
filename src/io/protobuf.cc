// SPDX-License-Identifier: Apache-2.0
#include "io/protobuf.h"

#include <fmt/format.h>

#include <bit>
#include <cstddef>
#include <limits>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read protocol buffer";

}  // namespace

std::uint64_t ProtobufReader::take_varint() {
  // Seven bits per byte, the lowest first; the highest bit says that more follow.
  constexpr int kBits = 7;
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += kBits) {
    const auto byte = static_cast<unsigned char>(take(1).front());
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw Error(kOperation, place_, "integers of up to ten bytes", "a longer one");
}

std::string_view ProtobufReader::take(std::uint64_t n_bytes) {
  if (n_bytes > rest_.size()) {
    throw Error(kOperation, place_, fmt::format("{} more bytes", n_bytes),
                fmt::format("{}", rest_.size()));
  }
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(n_bytes));
  rest_.remove_prefix(taken.size());
  return taken;
}

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const std::uint64_t tag = take_varint();
  constexpr std::uint64_t kLargestNumber = (std::uint64_t{1} << 29) - 1;  // the format's limit
  if (tag >> 3 == 0 || tag >> 3 > kLargestNumber) {
    throw Error(kOperation, place_, "fields numbered from 1", fmt::format("{}", tag >> 3));
  }
  number_ = static_cast<std::uint32_t>(tag >> 3);
  type_ = static_cast<Type>(tag & 7);
  bytes_ = {};
  switch (type_) {
    case Type::kVarint:
      integer_ = take_varint();
      return true;
    case Type::kFixed64:
      bytes_ = take(8);
      return true;
    case Type::kBytes:
      bytes_ = take(take_varint());
      return true;
    case Type::kFixed32:
      bytes_ = take(4);
      return true;
  }
  throw Error(kOperation, where(), "an integer, bytes, or 32 or 64 bits",
              fmt::format("type {}", tag & 7));
}

std::string ProtobufReader::where() const { return fmt::format("{}: field {}", place_, number_); }

void ProtobufReader::require(Type type, std::string_view expected) const {
  if (type_ == type) return;
  throw Error(kOperation, where(), expected,
              fmt::format("type {}", static_cast<std::uint32_t>(type_)));
}

std::string_view ProtobufReader::bytes() const {
  require(Type::kBytes, "bytes");
  return bytes_;
}

std::int32_t ProtobufReader::integer() const {
  require(Type::kVarint, "an integer");
  const auto value = static_cast<std::int64_t>(integer_);
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    throw Error(kOperation, where(), "an integer of 32 bits", fmt::format("{}", value));
  }
  return static_cast<std::int32_t>(value);
}

bool ProtobufReader::boolean() const {
  require(Type::kVarint, "true or false");
  return integer_ != 0;
}

float ProtobufReader::real() const {
  require(Type::kFixed32, "a number of 32 bits");
  std::uint32_t bits = 0;
  for (std::size_t i = 4; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(bytes_[i]);
  return std::bit_cast<float>(bits);
}

}  // namespace outrider
