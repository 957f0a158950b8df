// SPDX-License-Identifier: Apache-2.0
#include "io/gguf/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <system_error>
#include <type_traits>
#include <unordered_map>

#include "base/files/mapped_file.h"
#include "io/gguf/gguf_types.h"
#include "io/gguf/map_gguf.h"
#include "io/tensor_table.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read GGUF";
constexpr std::string_view kLookUp = "read GGUF metadata";
constexpr std::size_t kLongestName = 65535;  // the format's limit for keys; used for tensors too
constexpr std::uint32_t kMaxDimensions = 4;

// The minimum size of an entry: a count is checked against the remaining bytes before anything of
// that size is allocated.
constexpr std::uint64_t kMinEntryBytes = 8 + 4 + 1;           // key, type, value
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;  // name, rank, size, type, offset

// Existing types that cannot be decoded here, named in errors.
struct ForeignType {
  std::uint32_t number;
  std::string_view name;
};
constexpr std::array kForeignTypes = {
    ForeignType{9, "q8_1"},    ForeignType{15, "q8_k"},    ForeignType{16, "iq2_xxs"},
    ForeignType{17, "iq2_xs"}, ForeignType{18, "iq3_xxs"}, ForeignType{19, "iq1_s"},
    ForeignType{21, "iq3_s"},  ForeignType{22, "iq2_s"},   ForeignType{29, "iq1_m"},
    ForeignType{34, "tq1_0"},  ForeignType{35, "tq2_0"},   ForeignType{40, "nvfp4"},
    ForeignType{41, "q1_0"},
};

void set_type(std::uint32_t number, TensorView& view) {
  for (const GgufTensorType& known : kGgufTensorTypes) {
    if (known.number == number) {
      view.type = known.type;
      return;
    }
  }
  view.type = ElementType::foreign;
  view.foreign_type = fmt::format("type number {}", number);
  for (const ForeignType& foreign : kForeignTypes) {
    if (foreign.number == number) view.foreign_type = foreign.name;
  }
}

// Reads bytes in order; every read is checked against what is left.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view description)
      : bytes_(bytes), description_(description) {}

  std::size_t position() const { return position_; }
  // The bytes read since `begin`.
  std::span<const std::byte> read_since(std::size_t begin) const {
    return bytes_.subspan(begin, position_ - begin);
  }
  std::size_t left() const { return bytes_.size() - position_; }

  // `what` is the field, for the error message.
  template <typename T>
  T number(std::string_view what) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value;
    std::memcpy(&value, take(sizeof(T), what).data(), sizeof(T));
    return value;
  }

  std::string_view text(std::string_view what) {
    const auto n_bytes = number<std::uint64_t>(what);
    if (n_bytes > left()) {
      throw Error(kOperation, object(what), fmt::format("a length of at most {} bytes", left()),
                  fmt::format("{}", n_bytes));
    }
    const auto taken = take(static_cast<std::size_t>(n_bytes), what);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  std::string name(std::string_view what) {
    const std::string_view value = text(what);
    if (value.size() > kLongestName) {
      throw Error(kOperation, object(what), fmt::format("at most {} bytes", kLongestName),
                  fmt::format("{}", value.size()));
    }
    return std::string(value);
  }

  // A count of items with at least `min_bytes` each.
  std::size_t count(std::uint64_t min_bytes, std::string_view what) {
    const auto value = number<std::uint64_t>(what);
    check_count(value, min_bytes, what);
    return static_cast<std::size_t>(value);
  }
  void check_count(std::uint64_t value, std::uint64_t min_bytes, std::string_view what) const {
    if (value > left() / min_bytes) {
      throw Error(
          kOperation, object(what),
          fmt::format("at most {} (that many fit the {} bytes left)", left() / min_bytes, left()),
          fmt::format("{}", value));
    }
  }

  std::string object(std::string_view what) const {
    return fmt::format("{}: {}", description_, what);
  }

 private:
  std::span<const std::byte> take(std::size_t n_bytes, std::string_view what) {
    if (n_bytes > left()) {
      throw Error(kOperation, object(what), fmt::format("{} bytes at byte {}", n_bytes, position_),
                  fmt::format("the end of the file after {}", left()));
    }
    const auto taken = bytes_.subspan(position_, n_bytes);
    position_ += n_bytes;
    return taken;
  }

  std::span<const std::byte> bytes_;
  std::string_view description_;
  std::size_t position_ = 0;
};

bool read_bool(Reader& reader, std::string_view what) {
  const auto value = reader.number<std::uint8_t>(what);
  if (value > 1) {
    throw Error(kOperation, reader.object(what), "a boolean of 0 or 1", fmt::format("{}", value));
  }
  return value == 1;
}

template <typename Stored, typename Widened>
GgufValue read_numbers(Reader& reader, std::string_view what) {
  std::vector<Widened> values(reader.count(sizeof(Stored), what));
  for (Widened& value : values) value = static_cast<Widened>(reader.number<Stored>(what));
  return values;
}

constexpr std::uint64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();

// One value beyond int64 turns the whole array into doubles, so that it stays homogeneous.
GgufValue read_u64_array(Reader& reader, std::string_view what) {
  std::vector<std::uint64_t> stored(reader.count(sizeof(std::uint64_t), what));
  for (std::uint64_t& value : stored) value = reader.number<std::uint64_t>(what);
  if (std::any_of(stored.begin(), stored.end(), [](auto v) { return v > kMaxInteger; })) {
    return std::vector<double>(stored.begin(), stored.end());
  }
  return std::vector<std::int64_t>(stored.begin(), stored.end());
}

GgufValue read_array(Reader& reader, std::string_view what) {
  const auto type = reader.number<std::uint32_t>(what);
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kU8:
      return read_numbers<std::uint8_t, std::int64_t>(reader, what);
    case GgufValueType::kI8:
      return read_numbers<std::int8_t, std::int64_t>(reader, what);
    case GgufValueType::kU16:
      return read_numbers<std::uint16_t, std::int64_t>(reader, what);
    case GgufValueType::kI16:
      return read_numbers<std::int16_t, std::int64_t>(reader, what);
    case GgufValueType::kU32:
      return read_numbers<std::uint32_t, std::int64_t>(reader, what);
    case GgufValueType::kI32:
      return read_numbers<std::int32_t, std::int64_t>(reader, what);
    case GgufValueType::kI64:
      return read_numbers<std::int64_t, std::int64_t>(reader, what);
    case GgufValueType::kU64:
      return read_u64_array(reader, what);
    case GgufValueType::kF32:
      return read_numbers<float, double>(reader, what);
    case GgufValueType::kF64:
      return read_numbers<double, double>(reader, what);
    case GgufValueType::kBool: {
      std::vector<bool> values(reader.count(1, what));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = read_bool(reader, what);
      return values;
    }
    case GgufValueType::kString: {
      std::vector<std::string> values(reader.count(8, what));
      for (std::string& value : values) value = reader.text(what);
      return values;
    }
    case GgufValueType::kArray:
      throw Error(kOperation, reader.object(what), "an array of plain values",
                  "an array of arrays");
  }
  throw Error(kOperation, reader.object(what), "an array of value type 0 to 12",
              fmt::format("{}", type));
}

GgufValue read_value(Reader& reader, std::string_view what) {
  const auto type = reader.number<std::uint32_t>(what);
  switch (static_cast<GgufValueType>(type)) {
    case GgufValueType::kU8:
      return std::int64_t{reader.number<std::uint8_t>(what)};
    case GgufValueType::kI8:
      return std::int64_t{reader.number<std::int8_t>(what)};
    case GgufValueType::kU16:
      return std::int64_t{reader.number<std::uint16_t>(what)};
    case GgufValueType::kI16:
      return std::int64_t{reader.number<std::int16_t>(what)};
    case GgufValueType::kU32:
      return std::int64_t{reader.number<std::uint32_t>(what)};
    case GgufValueType::kI32:
      return std::int64_t{reader.number<std::int32_t>(what)};
    case GgufValueType::kI64:
      return reader.number<std::int64_t>(what);
    case GgufValueType::kU64: {
      const auto value = reader.number<std::uint64_t>(what);
      if (value > kMaxInteger) return static_cast<double>(value);
      return static_cast<std::int64_t>(value);
    }
    case GgufValueType::kF32:
      return double{reader.number<float>(what)};
    case GgufValueType::kF64:
      return reader.number<double>(what);
    case GgufValueType::kBool:
      return read_bool(reader, what);
    case GgufValueType::kString:
      return std::string(reader.text(what));
    case GgufValueType::kArray:
      return read_array(reader, what);
  }
  throw Error(kOperation, reader.object(what), "value type 0 to 12", fmt::format("{}", type));
}

using Metadata = std::vector<std::pair<std::string, GgufValue>>;
using Index = std::unordered_map<std::string_view, const GgufValue*>;

// An index by key: views and pointers into `metadata`. Throws Error on a duplicate.
Index index_of(const Metadata& metadata, std::string_view description) {
  Index index;
  index.reserve(metadata.size());
  for (const auto& entry : metadata) {
    if (!index.emplace(entry.first, &entry.second).second) {
      throw Error(kOperation, fmt::format("{}: key '{}'", description, entry.first),
                  "keys to be unique", "a duplicate");
    }
  }
  return index;
}

std::uint64_t read_alignment(const Index& index, std::string_view description) {
  const auto found = index.find(kGgufAlignmentKey);
  if (found == index.end()) return kDefaultGgufAlignment;
  const auto* value = std::get_if<std::int64_t>(found->second);
  // The format requires a multiple of 8 that fits into 32 bits; every tool writes a power of two.
  const bool good = value != nullptr && *value >= 8 && *value <= (std::int64_t{1} << 31) &&
                    std::has_single_bit(static_cast<std::uint64_t>(*value));
  if (!good) {
    throw Error(kOperation, fmt::format("{}: key '{}'", description, kGgufAlignmentKey),
                "a power of two from 8 to 2^31",
                value != nullptr ? fmt::format("{}", *value) : "another type");
  }
  return static_cast<std::uint64_t>(*value);
}

// A tensor as the header describes it. begin and n_bytes count from the start of the data.
struct Claim {
  TensorView view;  // without data yet
  std::uint64_t begin = 0;
  std::uint64_t n_bytes = 0;
};

Claim read_claim(Reader& reader, std::uint64_t alignment) {
  Claim claim;
  TensorView& view = claim.view;
  view.name = reader.name("a tensor's name");
  const std::string what = fmt::format("tensor '{}'", view.name);
  const auto n_dimensions = reader.number<std::uint32_t>(what);
  if (n_dimensions < 1 || n_dimensions > kMaxDimensions) {
    throw Error(kOperation, reader.object(what), fmt::format("1 to {} dimensions", kMaxDimensions),
                fmt::format("{}", n_dimensions));
  }
  // The file's order is innermost first.
  view.shape.resize(n_dimensions);
  for (auto size = view.shape.rbegin(); size != view.shape.rend(); ++size) {
    const auto stored = reader.number<std::uint64_t>(what);
    if (stored < 1 || stored > kMaxInteger) {
      throw Error(kOperation, reader.object(what), "dimensions from 1 to 2^63 - 1",
                  fmt::format("{}", stored));
    }
    *size = static_cast<std::int64_t>(stored);
  }
  set_type(reader.number<std::uint32_t>(what), view);
  claim.begin = reader.number<std::uint64_t>(what);

  const auto row_elements = static_cast<std::uint64_t>(view.shape.back());
  if (row_elements % block_elements(view.type) != 0) {
    throw Error(
        kOperation, reader.object(what),
        fmt::format("rows of whole {} blocks of {}", name_of(view.type), block_elements(view.type)),
        fmt::format("{} elements", row_elements));
  }
  const std::optional<std::int64_t> n_elements = checked_n_elements(view.shape);
  const std::optional<std::uint64_t> n_bytes =
      n_elements ? checked_n_bytes(view.type, *n_elements) : std::nullopt;
  if (!n_bytes) {
    throw Error(kOperation, reader.object(what), "a shape whose size fits 63 bits",
                fmt::format("[{}] of {}", fmt::join(view.shape, ", "), name_of(view.type)));
  }
  claim.n_bytes = *n_bytes;
  if (claim.begin % alignment != 0) {
    throw Error(kOperation, reader.object(what),
                fmt::format("an offset that is a multiple of {}", alignment),
                fmt::format("{}", claim.begin));
  }
  return claim;
}

// Assigns every claim its bytes, after checking that they exist and do not overlap.
std::vector<TensorView> check_claims(std::vector<Claim> claims, std::span<const std::byte> data,
                                     const Reader& reader) {
  for (Claim& claim : claims) {
    if (claim.begin > data.size() || claim.n_bytes > data.size() - claim.begin) {
      throw Error(kOperation, reader.object(fmt::format("tensor '{}'", claim.view.name)),
                  fmt::format("its bytes within {} bytes of data", data.size()),
                  fmt::format("{} bytes from {}", claim.n_bytes, claim.begin));
    }
    claim.view.data = data.subspan(static_cast<std::size_t>(claim.begin),
                                   static_cast<std::size_t>(claim.n_bytes));
  }
  std::vector<Claim*> in_place(claims.size());
  std::transform(claims.begin(), claims.end(), in_place.begin(), [](auto& c) { return &c; });
  std::stable_sort(in_place.begin(), in_place.end(),
                   [](const Claim* a, const Claim* b) { return a->begin < b->begin; });
  // The size of a foreign type's elements is unknown: it gets all bytes up to the next tensor.
  for (std::size_t i = 0; i < in_place.size(); ++i) {
    TensorView& view = in_place[i]->view;
    if (view.type != ElementType::foreign) continue;
    const std::uint64_t end = i + 1 < in_place.size() ? in_place[i + 1]->begin : data.size();
    view.data = data.subspan(static_cast<std::size_t>(in_place[i]->begin),
                             static_cast<std::size_t>(end - in_place[i]->begin));
  }
  for (std::size_t i = 1; i < in_place.size(); ++i) {
    const Claim& before = *in_place[i - 1];
    const Claim& claim = *in_place[i];
    if (claim.begin < before.begin + before.n_bytes) {
      throw Error(kOperation, reader.object(fmt::format("tensor '{}'", claim.view.name)),
                  fmt::format("its bytes to begin at {} or later, after tensor '{}'",
                              before.begin + before.n_bytes, before.view.name),
                  fmt::format("{} (an overlap)", claim.begin));
    }
  }
  std::vector<TensorView> tensors;
  tensors.reserve(claims.size());
  for (Claim& claim : claims) tensors.push_back(std::move(claim.view));
  return tensors;
}

struct Contents {
  Metadata metadata;
  std::vector<std::span<const std::byte>> entries;  // each entry's bytes
  std::vector<TensorView> tensors;
};

Contents read_contents(std::span<const std::byte> bytes, std::string_view description) {
  Reader reader(bytes, description);
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()),
                               std::min(bytes.size(), kGgufMagic.size()));
  if (start != kGgufMagic) {
    throw Error(kOperation, reader.object("magic"), fmt::format("'{}'", kGgufMagic),
                fmt::format("'{}'", start));
  }
  reader.number<std::uint32_t>("magic");
  const auto version = reader.number<std::uint32_t>("version");
  if (version != 2 && version != 3) {
    // A small version in the upper bytes alone means the other byte order.
    const bool swapped = version != 0 && (version & 0xffffu) == 0;
    throw Error(kOperation, reader.object("version"), "2 or 3, little-endian",
                fmt::format("{}{}", version, swapped ? " (a big-endian file)" : ""));
  }
  const auto n_tensors = reader.number<std::uint64_t>("number of tensors");
  const auto n_entries = reader.number<std::uint64_t>("number of keys");
  reader.check_count(n_tensors, kMinTensorBytes, "number of tensors");
  reader.check_count(n_entries, kMinEntryBytes, "number of keys");

  Contents contents;
  contents.metadata.reserve(static_cast<std::size_t>(n_entries));
  contents.entries.reserve(static_cast<std::size_t>(n_entries));
  for (std::uint64_t i = 0; i < n_entries; ++i) {
    const std::size_t begin = reader.position();
    std::string key = reader.name("a key");
    GgufValue value = read_value(reader, fmt::format("key '{}'", key));
    contents.metadata.emplace_back(std::move(key), std::move(value));
    contents.entries.push_back(reader.read_since(begin));
  }
  // (Indexing also finds duplicates, before any key is used.)
  const std::uint64_t alignment =
      read_alignment(index_of(contents.metadata, description), description);

  reader.check_count(n_tensors, kMinTensorBytes, "number of tensors");
  std::vector<Claim> claims;
  claims.reserve(static_cast<std::size_t>(n_tensors));
  for (std::uint64_t i = 0; i < n_tensors; ++i) claims.push_back(read_claim(reader, alignment));

  // The data begins at the next multiple of the alignment; a file without tensors may end earlier.
  const std::uint64_t data_begin = (reader.position() + alignment - 1) / alignment * alignment;
  const auto data = bytes.subspan(std::min<std::size_t>(data_begin, bytes.size()));
  contents.tensors = check_claims(std::move(claims), data, reader);
  return contents;
}

class ParsedGguf : public GgufFile {
 public:
  explicit ParsedGguf(const std::filesystem::path& file)
      : mapping_(file),
        description_(file.string()),
        contents_(read_contents(mapping_->bytes(), description_)) {}

  ParsedGguf(std::span<const std::byte> bytes, std::string description)
      : description_(std::move(description)), contents_(read_contents(bytes, description_)) {}

  std::span<const TensorView> tensors() const override { return table_.tensors(); }
  const TensorView* find(std::string_view name) const override { return table_.find(name); }
  std::string description() const override { return description_; }
  std::span<const std::pair<std::string, GgufValue>> metadata() const override {
    return contents_.metadata;
  }
  std::span<const std::span<const std::byte>> entries() const override { return contents_.entries; }
  const GgufValue* find_metadata(std::string_view key) const override {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : found->second;
  }
  std::vector<std::filesystem::path> files() const override {
    if (!mapping_) return {};
    return {description_};
  }

  void release(const TensorView& tensor) const override {
    if (mapping_) mapping_->release(tensor.data);
  }

 private:
  const std::optional<MappedFile> mapping_;  // none for bytes in memory
  const std::string description_;
  Contents contents_;  // the two members below refer to it, or empty it
  const Index index_ = index_of(contents_.metadata, description_);
  const TensorTable table_{std::move(contents_.tensors), kOperation, description_};
};

std::string kind_of(const GgufValue& value) {
  struct Kind {
    std::string operator()(std::int64_t v) const { return fmt::format("the integer {}", v); }
    std::string operator()(double v) const { return fmt::format("the number {}", v); }
    std::string operator()(bool v) const { return fmt::format("the boolean {}", v); }
    std::string operator()(const std::string&) const { return "a text"; }
    std::string operator()(const std::vector<std::int64_t>&) const { return "integers"; }
    std::string operator()(const std::vector<double>&) const { return "numbers"; }
    std::string operator()(const std::vector<bool>&) const { return "booleans"; }
    std::string operator()(const std::vector<std::string>&) const { return "texts"; }
  };
  return std::visit(Kind{}, value);
}

// Null if the key is absent; throws Error if its value is not a T.
template <typename T>
const T* look_up(const GgufFile& file, std::string_view key, std::string_view expected) {
  const GgufValue* value = file.find_metadata(key);
  if (value == nullptr) return nullptr;
  if (const T* typed = std::get_if<T>(value)) return typed;
  throw Error(kLookUp, fmt::format("{}: key '{}'", file.description(), key), expected,
              kind_of(*value));
}

template <typename T>
std::optional<T> copy_of(const T* value) {
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

}  // namespace

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  return copy_of(look_up<std::int64_t>(*this, key, "an integer below 2^63"));
}

std::optional<double> GgufFile::real(std::string_view key) const {
  const GgufValue* value = find_metadata(key);
  if (value != nullptr && std::holds_alternative<std::int64_t>(*value)) {
    return static_cast<double>(std::get<std::int64_t>(*value));
  }
  return copy_of(look_up<double>(*this, key, "a number"));
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  return copy_of(look_up<bool>(*this, key, "a boolean"));
}

const std::string* GgufFile::string(std::string_view key) const {
  return look_up<std::string>(*this, key, "a text");
}

const std::vector<std::string>* GgufFile::strings(std::string_view key) const {
  return look_up<std::vector<std::string>>(*this, key, "an array of texts");
}

const std::vector<std::int64_t>* GgufFile::integers(std::string_view key) const {
  return look_up<std::vector<std::int64_t>>(*this, key, "an array of integers below 2^63");
}

const std::vector<double>* GgufFile::reals(std::string_view key) const {
  return look_up<std::vector<double>>(*this, key, "an array of numbers");
}

bool is_gguf(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;  // reading a pipe would block
  std::string start(kGgufMagic.size(), '\0');
  std::ifstream(file, std::ios::binary).read(start.data(), std::ssize(start));
  return start == kGgufMagic;
}

std::unique_ptr<GgufFile> map_gguf(const std::filesystem::path& file) {
  return std::make_unique<ParsedGguf>(file);
}

std::unique_ptr<GgufFile> parse_gguf(std::span<const std::byte> bytes, std::string description) {
  return std::make_unique<ParsedGguf>(bytes, std::move(description));
}

}  // namespace outrider
