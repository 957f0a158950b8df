// SPDX-License-Identifier: Apache-2.0
#include "outrider/datastore.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "engine/files/text_documents.h"
#include "io/datastore.h"
#include "io/datastore_writer.h"
#include "outrider/error.h"
#include "tokenizer/same_vocabulary.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// The ids of one piece. What the tokenizer adds to a text belongs to the whole document: the
// beginning to its first piece; and an end token to its last, even if the tokenizer adds none to
// prompts.
std::vector<TokenId> encode(const Tokenizer& tokenizer, const TextDocuments::Piece& piece) {
  std::vector<TokenId> tokens = tokenizer.encode(piece.text, piece.first);
  const TokenId eos = tokenizer.eos_token();
  if (eos == kNoToken) return tokens;
  const bool has_eos = piece.first && !tokens.empty() && tokens.back() == eos;
  if (piece.last && !has_eos) tokens.push_back(eos);
  if (!piece.last && has_eos) tokens.pop_back();
  return tokens;
}

}  // namespace

DatastoreSummary build_datastore(const Tokenizer& tokenizer, std::span<const fs::path> texts,
                                 const fs::path& out, const DatastoreOptions& options) {
  // Otherwise the error would come after all the work, when the file is renamed.
  if (fs::is_directory(out)) {
    throw Error("build datastore", out.string(), "a place for a file", "a folder");
  }
  TextDocuments documents(texts, options.separator);
  DatastoreWriter writer(out, vocabulary_id(tokenizer), options.segment_tokens);
  const auto report = [&] {
    if (!options.progress || documents.n_bytes() == 0) return;
    const double read =
        static_cast<double>(documents.n_bytes_read()) / static_cast<double>(documents.n_bytes());
    // Estimates the tokens of the rest of the text from the part that was read.
    const double sorted = writer.n_tokens() == 0 ? 0
                                                 : read * static_cast<double>(writer.n_written()) /
                                                       static_cast<double>(writer.n_tokens());
    options.progress(std::min(1.0, (read + sorted) / 2));
  };
  while (const std::optional<TextDocuments::Piece> piece = documents.next()) {
    report();
    writer.add(encode(tokenizer, *piece));
    if (piece->last) writer.end_document();
  }
  report();
  writer.commit();
  return inspect_datastore(out);
}

DatastoreSummary inspect_datastore(const fs::path& path, bool check) {
  const Datastore store(path);
  if (check) store.check();
  return {.n_tokens = store.n_tokens(),
          .n_documents = store.n_documents(),
          .n_segments = store.n_segments(),
          .n_bytes = store.n_bytes(),
          .vocabulary_size = store.vocabulary().size,
          .vocabulary_fingerprint = store.vocabulary().fingerprint};
}

}  // namespace outrider
