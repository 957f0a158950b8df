// SPDX-License-Identifier: Apache-2.0
#include "io/datastore.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "base/checksum.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::string_view kOperation = "read datastore";

template <typename Number>
Number number_at(std::span<const std::byte> bytes, std::size_t offset) {
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

}  // namespace

// A pattern in the file's byte order, and the comparison of suffixes with it.
class Datastore::Key {
 public:
  explicit Key(std::span<const TokenId> pattern) : n_bytes_(4 * pattern.size()) {
    for (std::size_t index = 0; index < pattern.size(); ++index) {
      const auto token = static_cast<std::uint32_t>(pattern[index]);
      for (std::size_t byte = 0; byte < 4; ++byte) {
        bytes_[4 * index + byte] = static_cast<std::byte>(token >> (24 - 8 * byte));
      }
    }
  }

  // Negative if the suffix orders before all that begin with the pattern, 0 if it is one of them. A
  // suffix that ends within the pattern orders before; so does one with an invalid beginning.
  int compare(const Segment& segment, std::uint32_t rank) const {
    const std::uint32_t place = place_at(segment, rank);
    if (place >= segment.n_tokens) return -1;
    const std::size_t n_left = 4 * std::size_t{segment.n_tokens - place};
    const std::size_t n_compared = std::min(n_bytes_, n_left);
    const int order =
        std::memcmp(segment.tokens + 4 * std::size_t{place}, bytes_.data(), n_compared);
    return order != 0 || n_left >= n_bytes_ ? order : -1;
  }

 private:
  std::array<std::byte, 4 * std::size_t{kLongestPattern}> bytes_;
  std::size_t n_bytes_;
};

Datastore::Datastore(const std::filesystem::path& path)
    : file_(path), bytes_(file_->bytes()), description_(path.string()) {
  parse();
}

Datastore::Datastore(std::span<const std::byte> bytes, std::string description)
    : bytes_(bytes), description_(std::move(description)) {
  parse();
}

// Parses everything except the table. Returns the number of segments, whose table entries fit the
// file exactly.
std::size_t Datastore::parse_header(std::size_t& table_offset) {
  const auto require = [this](bool holds, std::string_view expected, std::string_view got) {
    if (!holds) throw Error(kOperation, description_, expected, got);
  };
  const auto magic = std::as_bytes(std::span(kMagic));
  require(bytes_.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes_.begin()),
          fmt::format("a datastore (a file that begins with {})", kMagic), "another file");
  require(bytes_.size() >= kHeader_bytes, fmt::format("a header of {} bytes", kHeader_bytes),
          fmt::format("{} bytes", bytes_.size()));
  // The version comes first, since it defines how to read the rest.
  const auto version = number_at<std::uint32_t>(bytes_, 8);
  require(version == kVersion, fmt::format("version {}", kVersion), fmt::format("{}", version));
  require(number_at<std::uint64_t>(bytes_, 64) == checksum(bytes_.first(64)),
          "a header with its checksum", "another checksum");
  const std::size_t n_segments = number_at<std::uint32_t>(bytes_, 12);
  vocabulary_.fingerprint = number_at<std::uint64_t>(bytes_, 16);
  const auto vocabulary_size = number_at<std::uint32_t>(bytes_, 24);
  require(vocabulary_size >= 1 && vocabulary_size <= std::uint32_t{std::numeric_limits<int>::max()},
          "a vocabulary of 1 to 2147483647 tokens", fmt::format("{}", vocabulary_size));
  vocabulary_.size = static_cast<int>(vocabulary_size);
  const auto reserved = number_at<std::uint32_t>(bytes_, 28);
  require(reserved == 0, "0 at byte 28", fmt::format("{}", reserved));
  n_tokens_ = number_at<std::uint64_t>(bytes_, 32);
  n_documents_ = number_at<std::uint64_t>(bytes_, 40);
  const auto offset = number_at<std::uint64_t>(bytes_, 48);
  require(n_segments >= 1, "at least one segment", "none");
  require(offset >= kHeader_bytes && offset <= bytes_.size() &&
              (bytes_.size() - offset) / kTableEntry_bytes == n_segments &&
              (bytes_.size() - offset) % kTableEntry_bytes == 0,
          fmt::format("a table of {} segments up to the end", n_segments),
          fmt::format("one that begins at byte {} of {}", offset, bytes_.size()));
  table_offset = static_cast<std::size_t>(offset);
  require(number_at<std::uint64_t>(bytes_, 56) == checksum(bytes_.subspan(table_offset)),
          "a table with its checksum", "another checksum");
  return n_segments;
}

void Datastore::parse() {
  std::size_t table_offset = 0;
  const std::size_t n_segments = parse_header(table_offset);
  std::size_t offset = kHeader_bytes;
  std::uint64_t n_suffixes = 0;
  segments_.reserve(n_segments);
  for (std::size_t index = 0; index < n_segments; ++index) {
    const std::size_t entry = table_offset + index * kTableEntry_bytes;
    Segment segment;
    segment.n_tokens = number_at<std::uint32_t>(bytes_, entry);
    segment.n_suffixes = number_at<std::uint32_t>(bytes_, entry + 4);
    segment.sum = number_at<std::uint64_t>(bytes_, entry + 8);
    if (segment.n_tokens == 0 || segment.n_tokens > kMaxSegment_tokens + kOverlap_tokens ||
        segment.n_suffixes > segment.n_tokens) {
      throw Error(kOperation, fmt::format("{}: segment {}", description_, index),
                  fmt::format("1 to {} tokens, and no more suffixes than tokens",
                              kMaxSegment_tokens + kOverlap_tokens),
                  fmt::format("{} tokens, {} suffixes", segment.n_tokens, segment.n_suffixes));
    }
    const std::size_t n_bytes =
        4 * (std::size_t{segment.n_tokens} + std::size_t{segment.n_suffixes});
    if (n_bytes > table_offset - offset) {
      throw Error(kOperation, fmt::format("{}: segment {}", description_, index),
                  fmt::format("at most the {} bytes before the table", table_offset - offset),
                  fmt::format("{}", n_bytes));
    }
    segment.tokens = bytes_.data() + offset;
    segment.suffixes = segment.tokens + 4 * std::size_t{segment.n_tokens};
    offset += n_bytes;
    n_suffixes += segment.n_suffixes;
    segments_.push_back(segment);
  }
  if (offset != table_offset || n_suffixes != n_tokens_) {
    throw Error(kOperation, description_,
                fmt::format("segments up to byte {} with {} suffixes", table_offset, n_tokens_),
                fmt::format("up to byte {} with {}", offset, n_suffixes));
  }
}

TokenId Datastore::token_at(const Segment& segment, std::uint64_t place) {
  const std::byte* bytes = segment.tokens + 4 * place;
  std::uint32_t token = 0;
  for (int byte = 0; byte < 4; ++byte)
    token = token << 8 | std::to_integer<std::uint32_t>(bytes[byte]);
  // Ids beyond any vocabulary end a continuation like kNoToken.
  return token <= std::uint32_t{std::numeric_limits<TokenId>::max()} ? static_cast<TokenId>(token)
                                                                     : kNoToken;
}

std::uint32_t Datastore::place_at(const Segment& segment, std::uint32_t rank) {
  std::uint32_t place = 0;
  std::memcpy(&place, segment.suffixes + 4 * std::size_t{rank}, sizeof(place));
  return place;
}

std::uint32_t Datastore::place(int segment, std::uint32_t rank) const {
  return place_at(segments_[static_cast<std::size_t>(segment)], rank);
}

std::uint32_t Datastore::lower_bound(const Segment& segment, const Key& key) {
  std::uint32_t first = 0;
  for (std::uint32_t n = segment.n_suffixes; n > 0;) {
    const std::uint32_t half = n / 2;
    if (key.compare(segment, first + half) < 0) {
      first += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return first;
}

bool Datastore::contains(int segment, std::span<const TokenId> pattern) const {
  const Segment& searched = segments_[static_cast<std::size_t>(segment)];
  const Key key(pattern);
  const std::uint32_t first = lower_bound(searched, key);
  return first < searched.n_suffixes && key.compare(searched, first) == 0;
}

Datastore::Ranks Datastore::find(int segment, std::span<const TokenId> pattern) const {
  const Segment& searched = segments_[static_cast<std::size_t>(segment)];
  const Key key(pattern);
  Ranks ranks;
  ranks.first = lower_bound(searched, key);
  ranks.last = ranks.first;
  // Most runs are short: doubling steps, then a binary search between the last two.
  std::uint32_t n = 1;
  while (n <= searched.n_suffixes - ranks.last && key.compare(searched, ranks.last + n - 1) == 0) {
    ranks.last += n;
    n *= 2;
  }
  n = std::min(n - 1, searched.n_suffixes - ranks.last);
  while (n > 0) {
    const std::uint32_t half = n / 2;
    if (key.compare(searched, ranks.last + half) == 0) {
      ranks.last += half + 1;
      n -= half + 1;
    } else {
      n = half;
    }
  }
  return ranks;
}

void Datastore::check() const {
  for (std::size_t index = 0; index < segments_.size(); ++index) {
    const Segment& segment = segments_[index];
    const std::uint64_t tokens = checksum({segment.tokens, 4 * std::size_t{segment.n_tokens}});
    const std::span suffixes(segment.suffixes, 4 * std::size_t{segment.n_suffixes});
    if (checksum(suffixes, tokens) != segment.sum) {
      throw Error(kOperation, fmt::format("{}: segment {}", description_, index),
                  "bytes with their checksum", "others");
    }
  }
}

}  // namespace outrider
