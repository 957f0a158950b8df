// SPDX-License-Identifier: Apache-2.0
#include "io/safetensors/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files/mapped_file.h"
#include "io/strict_json.h"
#include "io/tensor_table.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read safetensors";
constexpr std::size_t kLengthBytes = 8;     // the header's length field
constexpr std::size_t kMaxDimensions = 64;  // PyTorch's own limit

struct NamedType {
  std::string_view name;
  ElementType type;
};
constexpr std::array kTypes = {
    NamedType{"F32", ElementType::f32},   NamedType{"F16", ElementType::f16},
    NamedType{"BF16", ElementType::bf16}, NamedType{"F64", ElementType::f64},
    NamedType{"I8", ElementType::i8},     NamedType{"I16", ElementType::i16},
    NamedType{"I32", ElementType::i32},   NamedType{"I64", ElementType::i64},
    NamedType{"U8", ElementType::u8},     NamedType{"BOOL", ElementType::boolean},
};

// A tensor as the header describes it. begin and end count from the start of the data.
struct Claim {
  std::string name;
  ElementType type;
  std::string foreign_type;
  std::vector<std::int64_t> shape;
  std::uint64_t begin;
  std::uint64_t end;
};

// {"__metadata__": {key: string, ...}, name: {"dtype": .., "shape": [..], "data_offsets": [b, e]}}
class HeaderHandler : public StrictJsonHandler {
 public:
  explicit HeaderHandler(std::string description)
      : StrictJsonHandler(kOperation, std::move(description)) {}

  std::vector<Claim> take_claims() { return std::move(claims_); }

  bool start_object(std::size_t) override {
    if (place_ == Place::kBefore) {
      place_ = Place::kHeader;
    } else if (place_ == Place::kHeader) {
      place_ = name_ == "__metadata__" ? Place::kMetadata : Place::kTensor;
      type_.reset();
      shape_.reset();
      offsets_.reset();
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (place_ == Place::kHeader) {
      if (!names_.insert(key).second) {
        throw Error(operation(), label(key), "names to be unique", "a duplicate");
      }
      name_ = std::move(key);
    } else if (place_ == Place::kTensor) {
      const bool repeated = (key == "dtype" && type_) || (key == "shape" && shape_) ||
                            (key == "data_offsets" && offsets_);
      if (repeated) unexpected(fmt::format("'{}' twice", key));
      if (key == "dtype") {
        place_ = Place::kType;
      } else if (key == "shape") {
        place_ = Place::kShapeStart;
      } else if (key == "data_offsets") {
        place_ = Place::kOffsetsStart;
      } else {
        unexpected(fmt::format("key '{}'", key));
      }
    } else if (place_ != Place::kMetadata) {  // its keys and texts are ignored
      unexpected(fmt::format("key '{}'", key));
    }
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kType) unexpected(fmt::format("'{}'", value));
    for (const NamedType& known : kTypes) {
      if (known.name == value) type_ = known.type;
    }
    if (!type_) {
      type_ = ElementType::foreign;
      foreign_type_ = std::move(value);
    }
    place_ = Place::kTensor;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kShapeStart) {
      place_ = Place::kShape;
      shape_.emplace();
    } else if (place_ == Place::kOffsetsStart) {
      place_ = Place::kOffsets;
      offsets_.emplace();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape && shape_->size() < kMaxDimensions &&
        value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      shape_->push_back(static_cast<std::int64_t>(value));
    } else if (place_ == Place::kOffsets && offsets_->size() < 2) {
      offsets_->push_back(value);
    } else {
      unexpected(fmt::to_string(value));
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::kOffsets && offsets_->size() != 2) unexpected("fewer");
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) {
      if (!type_ || !shape_ || !offsets_) {
        unexpected(fmt::format("no {}", !type_ ? "dtype" : !shape_ ? "shape" : "data_offsets"));
      }
      claims_.push_back({name_, *type_, std::move(foreign_type_), std::move(*shape_),
                         (*offsets_)[0], (*offsets_)[1]});
      foreign_type_.clear();
    }
    place_ = place_ == Place::kHeader ? Place::kAfter : Place::kHeader;
    return true;
  }

 protected:
  Expectation expected() const override {
    switch (place_) {
      case Place::kBefore:
      case Place::kAfter:
        return {description(), "one JSON object as header"};
      case Place::kHeader:
        return {label(name_), "an object that describes it"};
      case Place::kMetadata:
        return {fmt::format("{}: __metadata__", description()), "texts only"};
      case Place::kTensor:
        return {label(name_), "dtype, shape and data_offsets, each once"};
      case Place::kType:
        return {label(name_), "a dtype as a text"};
      case Place::kShapeStart:
      case Place::kShape:
        return {label(name_),
                fmt::format("shape as at most {} integers from 0 to 2^63 - 1", kMaxDimensions)};
      case Place::kOffsetsStart:
      case Place::kOffsets:
        return {label(name_), "data_offsets as two integers from 0 to 2^64 - 1"};
    }
    return {description(), "a header"};
  }

 private:
  enum class Place {
    kBefore,
    kHeader,
    kMetadata,
    kTensor,
    kType,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kAfter
  };

  std::string label(std::string_view name) const {
    return fmt::format("{}: tensor '{}'", description(), name);
  }

  Place place_ = Place::kBefore;
  std::set<std::string, std::less<>> names_;
  std::string name_;  // of the current entry
  std::optional<ElementType> type_;
  std::string foreign_type_;
  std::optional<std::vector<std::int64_t>> shape_;
  std::optional<std::vector<std::uint64_t>> offsets_;
  std::vector<Claim> claims_;
};

// Checks the claims of the header, sorted by position, against the data's size and each other:
// together they must cover every byte exactly once.
std::vector<TensorView> check_claims(std::vector<Claim> claims, std::span<const std::byte> data,
                                     const std::string& description) {
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::vector<TensorView> tensors;
  tensors.reserve(claims.size());
  std::uint64_t position = 0;
  for (Claim& claim : claims) {
    const std::string object = fmt::format("{}: tensor '{}'", description, claim.name);
    const std::string range = fmt::format("bytes {} to {}", claim.begin, claim.end);
    if (claim.begin > claim.end) throw Error(kOperation, object, "offsets in order", range);
    if (claim.end > data.size()) {
      throw Error(kOperation, object, fmt::format("offsets within {} bytes of data", data.size()),
                  range);
    }
    if (claim.begin != position) {
      throw Error(
          kOperation, object,
          fmt::format("its data to begin at byte {}, where the tensor before ends", position),
          fmt::format("{} ({})", range,
                      claim.begin < position ? "an overlap" : "a hole between tensors"));
    }
    const std::optional<std::int64_t> n_elements = checked_n_elements(claim.shape);
    const std::optional<std::uint64_t> n_bytes =
        n_elements ? checked_n_bytes(claim.type, *n_elements) : std::nullopt;
    if (!n_bytes) {
      throw Error(kOperation, object, "a shape whose size fits 63 bits",
                  fmt::format("[{}] of {}", fmt::join(claim.shape, ", "), name_of(claim.type)));
    }
    const std::uint64_t n_claimed = claim.end - claim.begin;
    if (claim.type != ElementType::foreign && *n_bytes != n_claimed) {
      throw Error(kOperation, object,
                  fmt::format("{} bytes for {} [{}]", *n_bytes, name_of(claim.type),
                              fmt::join(claim.shape, ", ")),
                  fmt::format("{} ({})", n_claimed, range));
    }
    position = claim.end;
    tensors.push_back({.name = std::move(claim.name),
                       .type = claim.type,
                       .shape = std::move(claim.shape),
                       .data = data.subspan(static_cast<std::size_t>(claim.begin),
                                            static_cast<std::size_t>(n_claimed)),
                       .foreign_type = std::move(claim.foreign_type)});
  }
  if (position != data.size()) {
    throw Error(kOperation, description, fmt::format("{} bytes of data", position),
                fmt::format("{}", data.size()));
  }
  return tensors;
}

std::vector<TensorView> read_tensors(std::span<const std::byte> bytes,
                                     const std::string& description) {
  if (bytes.size() < kLengthBytes) {
    throw Error(kOperation, description, "8 bytes of header length",
                fmt::format("a file of {} bytes", bytes.size()));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), kLengthBytes);
  const std::span<const std::byte> rest = bytes.subspan(kLengthBytes);
  const std::uint64_t longest = std::min<std::uint64_t>(rest.size(), kLongestJson);
  if (header_bytes > longest) {
    throw Error(kOperation, description, fmt::format("a header of at most {} bytes", longest),
                fmt::format("header length {}", header_bytes));
  }
  const auto n_header = static_cast<std::size_t>(header_bytes);
  const std::string_view header(reinterpret_cast<const char*>(rest.data()), n_header);
  if (header.empty() || header.front() != '{') {
    throw Error(kOperation, description, "a header that begins with '{'",
                header.empty() ? "an empty one" : fmt::format("'{}'", header.substr(0, 1)));
  }
  HeaderHandler handler(description);
  handler.read(header);
  return check_claims(handler.take_claims(), rest.subspan(n_header), description);
}

class SafetensorsFile : public TensorSource {
 public:
  SafetensorsFile(std::span<const std::byte> bytes, std::string description)
      : description_(std::move(description)),
        table_(read_tensors(bytes, description_), kOperation, description_) {}

  explicit SafetensorsFile(const std::filesystem::path& path)
      : mapping_(path),
        description_(path.string()),
        table_(read_tensors(mapping_->bytes(), description_), kOperation, description_) {}

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return description_; }
  void release(const TensorView& tensor) const override {
    if (mapping_) mapping_->release(tensor.data);
  }

 private:
  std::optional<MappedFile> mapping_;  // none for bytes in memory
  std::string description_;
  TensorTable table_;
};

}  // namespace

std::unique_ptr<TensorSource> open_safetensors(const std::filesystem::path& file) {
  return std::make_unique<SafetensorsFile>(file);
}

std::unique_ptr<TensorSource> parse_safetensors(std::span<const std::byte> bytes,
                                                std::string description) {
  return std::make_unique<SafetensorsFile>(bytes, std::move(description));
}

}  // namespace outrider
