// Datastores: text in a form in which the drafter "retrieval:path=FILE" looks for continuations.
#ifndef OUTRIDER_DATASTORE_H_
#define OUTRIDER_DATASTORE_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "outrider/tokenizer.h"

namespace outrider {

struct DatastoreSummary {
  std::uint64_t n_tokens = 0;
  std::uint64_t n_documents = 0;
  int n_segments = 0;         // parts that were sorted by themselves: a query searches each
  std::uint64_t n_bytes = 0;  // of the file
  int vocabulary_size = 0;    // of the tokenizer it was built with
  std::uint64_t vocabulary_fingerprint = 0;
};

struct DatastoreOptions {
  // What stands between the documents of a file; empty: a file is one document. No draft goes on
  // from one document into the next.
  std::string separator = {};
  // Tokens sorted at once. Each takes 20 bytes of memory while its segment is sorted; fewer
  // segments make faster queries. 1 to 536870639.
  std::uint32_t segment_tokens = 1U << 24;
  // Called while building with the share done, 0..1; not while a segment is sorted, which takes
  // some seconds. What it throws ends the build.
  std::function<void(double)> progress = {};
};

// Tokenises `texts`, each a file of UTF-8 text or a folder of such files (searched with its
// sub-folders in the order of names, without those that begin with a dot), and writes the
// datastore to `out`, which appears whole or not at all; until then, what was there stays. Every
// document gets the tokenizer's special tokens and its end token. The same texts, tokenizer and
// options make the same file. Disk: 8 bytes a token. Throws Error for files that cannot be read or
// written, text that is not UTF-8 (naming the line) or is none, and UsageError for options.
DatastoreSummary build_datastore(const Tokenizer& tokenizer,
                                 std::span<const std::filesystem::path> texts,
                                 const std::filesystem::path& out,
                                 const DatastoreOptions& options = {});

// Throws Error if the file is no whole datastore; with `check`, also if any byte of it is not what
// was written, which takes reading all of it.
DatastoreSummary inspect_datastore(const std::filesystem::path& path, bool check = false);

}  // namespace outrider

#endif  // OUTRIDER_DATASTORE_H_
