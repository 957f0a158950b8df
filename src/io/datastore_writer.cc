// SPDX-License-Identifier: Apache-2.0
#include "io/datastore_writer.h"

#include <divsufsort.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "build datastore";

template <typename Number>
void put(std::span<std::byte> bytes, std::size_t offset, Number number) {
  std::memcpy(bytes.data() + offset, &number, sizeof(number));
}

}  // namespace

DatastoreWriter::DatastoreWriter(std::filesystem::path path, const VocabularyId& vocabulary,
                                 std::uint32_t segment_tokens)
    : path_(path),
      file_(std::move(path)),
      vocabulary_(vocabulary),
      segment_tokens_(segment_tokens) {
  if (segment_tokens < 1 || segment_tokens > Datastore::kMaxSegment_tokens) {
    throw UsageError(kOperation, "tokens of a segment",
                     fmt::format("1 to {}", Datastore::kMaxSegment_tokens),
                     fmt::format("{}", segment_tokens));
  }
  constexpr std::array<std::byte, Datastore::kHeader_bytes> kNothingYet{};
  file_.write(kNothingYet);
}

void DatastoreWriter::push(TokenId token) {
  const auto bits = static_cast<std::uint32_t>(token);
  for (int shift = 24; shift >= 0; shift -= 8) {
    tokens_.push_back(static_cast<std::byte>(bits >> shift));
  }
  if (tokens_.size() == 4 * (segment_tokens_ + Datastore::kOverlap_tokens)) {
    write_segment(segment_tokens_);
  }
}

void DatastoreWriter::add(std::span<const TokenId> tokens) {
  for (const TokenId token : tokens) {
    if (token < 0 || token >= vocabulary_.size) {
      throw Error(kOperation, path_.string(),
                  fmt::format("tokens of the vocabulary, 0 to {}", vocabulary_.size - 1),
                  fmt::format("{}", token));
    }
    push(token);
  }
  n_added_ += tokens.size();
  in_document_ = in_document_ || !tokens.empty();
}

void DatastoreWriter::end_document() {
  if (!in_document_) return;
  push(kNoToken);
  ++n_documents_;
  in_document_ = false;
}

// Sorts the suffixes that begin at one of the first n_own tokens to the front of suffixes_; returns
// their number.
std::size_t DatastoreWriter::sort_segment(std::size_t n_own, std::size_t n_stored) {
  suffixes_.resize(4 * n_stored);
  const int status = ::divsufsort(reinterpret_cast<const std::uint8_t*>(tokens_.data()),
                                  suffixes_.data(), static_cast<std::int32_t>(4 * n_stored));
  if (status != 0) {
    throw Error(kOperation, path_.string(), "memory to sort a segment", "not enough");
  }
  constexpr std::array kSeparator = {std::byte{0xFF}, std::byte{0xFF}, std::byte{0xFF},
                                     std::byte{0xFF}};
  std::size_t n_suffixes = 0;
  for (const std::int32_t suffix : suffixes_) {
    const auto byte = static_cast<std::size_t>(suffix);
    if (byte % 4 != 0 || byte / 4 >= n_own) continue;
    if (std::equal(kSeparator.begin(), kSeparator.end(), tokens_.begin() + suffix)) continue;
    suffixes_[n_suffixes++] = static_cast<std::int32_t>(byte / 4);
  }
  return n_suffixes;
}

void DatastoreWriter::write_segment(std::size_t n_own) {
  const std::size_t n_stored = std::min(n_own + Datastore::kOverlap_tokens, tokens_.size() / 4);
  const std::size_t n_suffixes = sort_segment(n_own, n_stored);
  const std::span<const std::byte> array =
      std::as_bytes(std::span<const std::int32_t>(suffixes_).first(n_suffixes));
  const std::span<const std::byte> tokens = std::span<const std::byte>(tokens_).first(4 * n_stored);
  file_.write(tokens);
  file_.write(array);
  std::array<std::byte, Datastore::kTableEntry_bytes> entry{};
  put(entry, 0, static_cast<std::uint32_t>(n_stored));
  put(entry, 4, static_cast<std::uint32_t>(n_suffixes));
  put(entry, 8, checksum(array, checksum(tokens)));
  table_.insert(table_.end(), entry.begin(), entry.end());
  offset_ += tokens.size() + array.size();
  n_written_ += n_own;
  tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(4 * n_own));
}

void DatastoreWriter::commit() {
  end_document();
  if (n_added_ == 0) throw Error(kOperation, path_.string(), "some text", "no tokens");
  while (!tokens_.empty()) write_segment(std::min(segment_tokens_, tokens_.size() / 4));
  file_.write(table_);
  std::array<std::byte, Datastore::kHeader_bytes> header{};
  std::memcpy(header.data(), Datastore::kMagic.data(), Datastore::kMagic.size());
  put(header, 8, Datastore::kVersion);
  put(header, 12, static_cast<std::uint32_t>(n_segments()));
  put(header, 16, vocabulary_.fingerprint);
  put(header, 24, static_cast<std::uint32_t>(vocabulary_.size));
  put(header, 32, n_added_);
  put(header, 40, n_documents_);
  put(header, 48, offset_);
  put(header, 56, checksum(table_));
  put(header, 64, checksum(std::span<const std::byte>(header).first(64)));
  file_.overwrite(0, header);
  file_.commit();
}

}  // namespace outrider
