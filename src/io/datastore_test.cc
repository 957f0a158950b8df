// SPDX-License-Identifier: Apache-2.0
// Compares datastores with a search of the plain text: every pattern, any segment boundaries, any
// ids; and files that contradict their header.
#include "io/datastore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "io/datastore_writer.h"
#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Tokens = std::vector<TokenId>;

// A text as stored: documents, each followed by kNoToken.
struct Text {
  std::vector<Tokens> documents;
  Tokens joined() const {
    Tokens all;
    for (const Tokens& document : documents) {
      if (document.empty()) continue;
      all.insert(all.end(), document.begin(), document.end());
      all.push_back(kNoToken);
    }
    return all;
  }
};

// n_ids ids spread over the whole vocabulary, few enough for sequences to repeat.
Text random_text(std::mt19937& random, int vocabulary, int n_ids, int n_documents, int longest) {
  Tokens ids;
  ids.reserve(static_cast<std::size_t>(n_ids));
  for (int i = 0; i < n_ids; ++i) {
    ids.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(vocabulary)));
  }
  ids[0] = vocabulary - 1;
  Text text;
  text.documents.reserve(static_cast<std::size_t>(n_documents) + 1);
  for (int i = 0; i < n_documents; ++i) {
    Tokens document(random() % static_cast<unsigned>(longest + 1));
    for (TokenId& token : document) token = ids[random() % ids.size()];
    text.documents.push_back(std::move(document));
  }
  text.documents.push_back({ids[0], ids[0]});
  return text;
}

void write_store(const fs::path& path, const Text& text, int vocabulary,
                 std::uint32_t segment_tokens) {
  DatastoreWriter writer(path, {.fingerprint = 77, .size = vocabulary}, segment_tokens);
  for (const Tokens& document : text.documents) {
    // In two pieces: the split must not matter.
    const std::size_t half = document.size() / 2;
    writer.add(std::span(document).first(half));
    writer.add(std::span(document).subspan(half));
    writer.end_document();
  }
  writer.commit();
}

// The continuations of all occurrences of the pattern, up to `depth` tokens or the document's end.
using Continuations = std::multiset<Tokens>;

Continuations search_text(const Tokens& joined, const Tokens& pattern, std::size_t depth) {
  Continuations found;
  for (auto at = joined.begin();; ++at) {
    at = std::search(at, joined.end(), pattern.begin(), pattern.end());
    if (at == joined.end()) return found;
    Tokens behind;
    for (auto next = at + static_cast<std::ptrdiff_t>(pattern.size());
         next != joined.end() && *next != kNoToken && behind.size() < depth; ++next) {
      behind.push_back(*next);
    }
    found.insert(behind);
  }
}

Continuations search_store(const Datastore& store, const Tokens& pattern, std::size_t depth) {
  Continuations found;
  for (int segment = 0; segment < store.n_segments(); ++segment) {
    const Datastore::Ranks ranks = store.find(segment, pattern);
    EXPECT_EQ(store.contains(segment, pattern), ranks.count() > 0);
    for (std::uint32_t rank = ranks.first; rank < ranks.last; ++rank) {
      const std::uint64_t place = store.place(segment, rank) + pattern.size();
      Tokens behind;
      while (behind.size() < depth) {
        const TokenId token = store.token(segment, place + behind.size());
        if (token == kNoToken) break;
        behind.push_back(token);
      }
      found.insert(behind);
    }
  }
  return found;
}

class DatastoreFiles : public ::testing::Test {
 protected:
  fs::path path() const { return directory_.path() / "store"; }
  std::vector<std::byte> file_bytes() const {
    std::ifstream file(path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  test::TemporaryDirectory directory_;
};

TEST_F(DatastoreFiles, FindWhatASearchOfTheTextFinds) {
  std::mt19937 random(1);
  struct Case {
    int vocabulary, n_ids;
    std::uint32_t segment_tokens;
  };
  constexpr Case kCases[] = {{2, 2, 1000},    {300, 3, 50},     {65537, 4, 64},
                             {128256, 2, 17}, {1 << 20, 6, 5},  {2147483647, 3, 33},
                             {70000, 5, 1},   {256, 2, 1 << 20}};
  for (const Case& each : kCases) {
    const Text text = random_text(random, each.vocabulary, each.n_ids, 12, 60);
    const Tokens joined = text.joined();
    write_store(path(), text, each.vocabulary, each.segment_tokens);
    const Datastore store(path());
    store.check();
    const auto n_tokens = static_cast<std::size_t>(
        std::count_if(joined.begin(), joined.end(), [](TokenId token) { return token >= 0; }));
    EXPECT_EQ(store.n_tokens(), n_tokens);
    EXPECT_EQ(store.n_documents(), joined.size() - n_tokens);
    EXPECT_EQ(store.vocabulary(), (VocabularyId{77, each.vocabulary}));
    EXPECT_EQ(store.n_bytes(), fs::file_size(path()));
    const std::size_t n_segments = (joined.size() + each.segment_tokens - 1) / each.segment_tokens;
    EXPECT_EQ(static_cast<std::size_t>(store.n_segments()), n_segments);

    // Patterns from the text, also across documents (never found), and random ones.
    for (int trial = 0; trial < 300; ++trial) {
      const std::size_t length = 1 + random() % Datastore::kLongestPattern;
      const std::size_t at = random() % joined.size();
      Tokens pattern(
          joined.begin() + static_cast<std::ptrdiff_t>(at),
          joined.begin() + static_cast<std::ptrdiff_t>(std::min(at + length, joined.size())));
      std::erase(pattern, kNoToken);
      if (trial % 5 == 0 && !pattern.empty()) {
        pattern[random() % pattern.size()] = joined[random() % (joined.size() - 1)];
        std::erase(pattern, kNoToken);
      }
      if (pattern.empty()) continue;
      EXPECT_EQ(search_store(store, pattern, 100), search_text(joined, pattern, 100))
          << each.vocabulary << " in segments of " << each.segment_tokens;
    }
  }
}

// Matches within a segment are ordered by their continuations, so evenly spaced samples contain
// each continuation in proportion (drafters/retrieval_drafter.h).
TEST_F(DatastoreFiles, MatchesComeInOrder) {
  std::mt19937 random(2);
  const Text text = random_text(random, 70000, 3, 20, 80);
  write_store(path(), text, 70000, 100);
  const Datastore store(path());
  int n_compared = 0;
  for (int segment = 0; segment < store.n_segments(); ++segment) {
    const Datastore::Ranks ranks = store.find(segment, Tokens{69999});
    for (std::uint32_t rank = ranks.first; rank + 1 < ranks.last; ++rank, ++n_compared) {
      const std::uint64_t left = store.place(segment, rank);
      const std::uint64_t right = store.place(segment, rank + 1);
      std::uint64_t same = 0;
      while (same < 200 &&
             store.token(segment, left + same) == store.token(segment, right + same) &&
             store.token(segment, left + same) != kNoToken) {
        ++same;
      }
      // kNoToken orders last.
      EXPECT_LE(static_cast<std::uint32_t>(store.token(segment, left + same)),
                static_cast<std::uint32_t>(store.token(segment, right + same)));
    }
  }
  EXPECT_GT(n_compared, 100);
}

TEST_F(DatastoreFiles, TheSameTokensMakeTheSameFile) {
  std::mt19937 random(3);
  const Text text = random_text(random, 1000, 5, 10, 40);
  write_store(path(), text, 1000, 64);
  const auto first = file_bytes();
  write_store(path(), text, 1000, 64);
  EXPECT_EQ(file_bytes(), first);
}

TEST_F(DatastoreFiles, WriterRefusesWhatIsNoText) {
  const VocabularyId vocabulary{.fingerprint = 1, .size = 10};
  {
    DatastoreWriter writer(path(), vocabulary);
    writer.add({});
    writer.end_document();
    EXPECT_THROW(writer.commit(), Error);
  }
  {
    DatastoreWriter writer(path(), vocabulary);
    EXPECT_THROW(writer.add(Tokens{3, 10}), Error);
  }
  EXPECT_THROW(DatastoreWriter(path(), vocabulary, 0), UsageError);
  EXPECT_THROW(DatastoreWriter(path(), vocabulary, Datastore::kMaxSegment_tokens + 1), UsageError);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

std::string error_of(std::span<const std::byte> bytes) {
  try {
    const Datastore store(bytes, "bytes");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void set(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value, std::size_t n_bytes) {
  std::memcpy(bytes.data() + at, &value, n_bytes);
}

// Corrects the checksums, so that later checks are reached.
void seal(std::vector<std::byte>& bytes) {
  std::uint64_t table = 0;
  std::memcpy(&table, bytes.data() + 48, sizeof(table));
  if (table <= bytes.size()) set(bytes, 56, checksum(std::span(bytes).subspan(table)), 8);
  set(bytes, 64, checksum(std::span(bytes).first(64)), 8);
}

TEST_F(DatastoreFiles, EveryFieldIsChecked) {
  std::mt19937 random(4);
  write_store(path(), random_text(random, 1000, 5, 10, 40), 1000, 64);
  const auto good = file_bytes();
  ASSERT_EQ(error_of(good), "");
  std::uint64_t table = 0;
  std::memcpy(&table, good.data() + 48, sizeof(table));
  struct Case {
    const char* message;
    std::size_t at;
    std::uint64_t value;
    std::size_t n_bytes;
  };
  const Case cases[] = {
      {"begins with ORDSTORE", 3, 'x', 1},
      {"expected version 1, got 2", 8, 2, 4},
      {"at least one segment", 12, 0, 4},
      {"a table of 9 segments", 12, 9, 4},
      {"a table of 4294967295 segments", 12, 0xFFFFFFFF, 4},
      {"a vocabulary of 1 to", 24, 0, 4},
      {"a vocabulary of 1 to", 24, 0x80000000, 4},
      {"expected 0 at byte 28, got 5", 28, 5, 4},
      {"suffixes, got up to byte", 32, 1, 8},
      {"up to the end, got one that begins at byte 71", 48, 71, 8},
      {"up to the end, got one that begins", 48, table + 4, 8},
      {"up to the end, got one that begins", 48, good.size() + 16, 8},
      {"up to the end, got one that begins", 48, ~std::uint64_t{0} - 15, 8},
      {"segment 0: expected 1 to", table, 0, 4},
      {"segment 0: expected 1 to", table, 0xFFFFFFFF, 4},
      {"segment 1: expected 1 to", table + 16 + 4, 0xFFFFFFFF, 4},
      {"segment 0: expected at most", table, 400000000, 4},
      {"segments up to byte", table + 4, 1, 4},
  };
  for (const Case& each : cases) {
    auto bad = good;
    set(bad, each.at, each.value, each.n_bytes);
    if (each.at >= 16) {
      EXPECT_THAT(error_of(bad), HasSubstr("checksum")) << each.message;
    }
    seal(bad);
    EXPECT_THAT(error_of(bad), HasSubstr(each.message));
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_NE(error_of(std::span(good).first(size)), "") << size;
  }
  auto longer = good;
  longer.push_back({});
  EXPECT_NE(error_of(longer), "");
}

// Wrong bytes within a segment are found only by check(); they make drafts worse, but reads stay
// safe.
TEST_F(DatastoreFiles, WrongContentsAreSafeAndSeenByCheck) {
  std::mt19937 random(5);
  write_store(path(), random_text(random, 70000, 3, 10, 60), 70000, 128);
  const auto good = file_bytes();
  std::uint64_t table = 0;
  std::memcpy(&table, good.data() + 48, sizeof(table));
  for (int trial = 0; trial < 200; ++trial) {
    auto bad = good;
    for (unsigned n = 1 + random() % 40; n > 0; --n) {
      const std::size_t at =
          Datastore::kHeader_bytes + random() % (table - Datastore::kHeader_bytes);
      bad[at] = static_cast<std::byte>(random());
    }
    if (bad == good) continue;
    // A copy of exactly that size, so that a sanitizer reports reads beyond it.
    const Datastore store(bad, "bytes");
    EXPECT_THROW(store.check(), Error);
    for (int segment = 0; segment < store.n_segments(); ++segment) {
      for (const TokenId token : {69999, 0, 1234}) {
        const Datastore::Ranks ranks = store.find(segment, Tokens{token});
        for (std::uint32_t rank = ranks.first; rank < ranks.last; ++rank) {
          const std::uint64_t place = store.place(segment, rank);
          for (std::uint64_t i = 0; i < 20; ++i) EXPECT_GE(store.token(segment, place + i), -1);
        }
      }
    }
  }
}

}  // namespace
}  // namespace outrider
