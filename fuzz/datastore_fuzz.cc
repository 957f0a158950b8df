// SPDX-License-Identifier: Apache-2.0
// Any bytes are either a datastore that is searched safely, or give an Error.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/checksum.h"
#include "io/datastore.h"
#include "outrider/error.h"

namespace {

using outrider::Datastore;
using outrider::TokenId;

// Sets the checksums that a writer would have written: without them hardly any input would get past
// the header.
void seal(std::vector<std::byte>& bytes) {
  if (bytes.size() < Datastore::kHeader_bytes) return;
  const auto put = [&bytes](std::size_t at, std::uint64_t number) {
    std::memcpy(bytes.data() + at, &number, sizeof(number));
  };
  std::uint64_t table = 0;
  std::memcpy(&table, bytes.data() + 48, sizeof(table));
  if (table <= bytes.size()) put(56, outrider::checksum(std::span(bytes).subspan(table)));
  put(64, outrider::checksum(std::span(bytes).first(64)));
}

// Searches every segment for runs of the store's own tokens and for some that it may not contain.
void search(const Datastore& store) {
  constexpr std::uint32_t kMaxRanks = 50;
  for (int segment = 0; segment < store.n_segments(); ++segment) {
    std::vector<TokenId> pattern;
    for (std::uint64_t place = 0; pattern.size() < Datastore::kLongestPattern; ++place) {
      const TokenId token = store.token(segment, place);
      pattern.push_back(token == outrider::kNoToken ? 0 : token);
      const Datastore::Ranks ranks = store.find(segment, pattern);
      if (ranks.first > ranks.last) std::abort();
      if (store.contains(segment, pattern) != (ranks.count() > 0)) std::abort();
      for (std::uint32_t i = 0; i < ranks.count() && i < kMaxRanks; ++i) {
        const std::uint64_t begin = store.place(segment, ranks.first + i);
        for (std::uint64_t step = 0; step < 12; ++step) {
          if (store.token(segment, begin + step) < outrider::kNoToken) std::abort();
        }
      }
    }
    if (store.token(segment, std::numeric_limits<std::uint64_t>::max()) != outrider::kNoToken) {
      std::abort();
    }
  }
}

void read(std::span<const std::byte> bytes) {
  try {
    const Datastore store(bytes, "input");
    search(store);
    store.check();
  } catch (const outrider::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read(bytes);
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  seal(sealed);
  read(sealed);
  return 0;
}
