// SPDX-License-Identifier: Apache-2.0
// Datastores: indexed text in which the drafter "retrieval:path=FILE" finds continuations.
// Thread-safe for different files.
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
  int n_segments = 0;         // parts that were sorted separately; a query searches each
  std::uint64_t n_bytes = 0;  // of the file
  int vocabulary_size = 0;    // of the tokenizer it was built with
  std::uint64_t vocabulary_fingerprint = 0;
};

struct DatastoreOptions {
  // Separates the documents of a file; empty: a file is one document. No draft crosses a document
  // boundary.
  std::string separator = {};
  // Tokens sorted at once, 1 to 536870639. Each takes 20 bytes of memory while its segment is
  // sorted. Fewer segments make faster queries.
  std::uint32_t segment_tokens = 1U << 24;
  // Called while building with the share done, 0..1; not while a segment is sorted, which takes
  // some seconds. An exception from it ends the build.
  std::function<void(double)> progress = {};
};

// Tokenises `texts` and writes the datastore to `out`. Each text is a UTF-8 file or a folder,
// searched with its sub-folders in the order of names, without names that begin with a dot. Every
// document gets the tokenizer's special tokens and its end token. `out` appears whole or not at
// all; until then an existing file stays. The same texts, tokenizer and options make the same file.
// Disk: 8 bytes a token. Throws Error for files that cannot be read or written, for empty text, and
// for text that is not UTF-8 (with the line). Throws UsageError for invalid options.
DatastoreSummary build_datastore(const Tokenizer& tokenizer,
                                 std::span<const std::filesystem::path> texts,
                                 const std::filesystem::path& out,
                                 const DatastoreOptions& options = {});

// Reads the summary of a datastore. Throws Error if the file is not a whole datastore. `check` also
// reads all bytes and throws Error if any was changed.
DatastoreSummary inspect_datastore(const std::filesystem::path& path, bool check = false);

}  // namespace outrider

#endif  // OUTRIDER_DATASTORE_H_
