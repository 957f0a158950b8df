// SPDX-License-Identifier: Apache-2.0
// A text on disk with its keys and values, for a later process with the same model.
//
//   "OUTRTEXT"  8 bytes
//   u32         version, 1
//   u32         n_tokens, all of them run
//   i32         (n_tokens) the tokens
//   u64         checksum (base/checksum.h) of all bytes before it
//   ...         what the model saves (LanguageModel::save), in its pieces
//   u64         the checksum continued over the pieces
//
// Little-endian, as are all machines with kernels.
#ifndef OUTRIDER_ENGINE_BATCH_SAVED_TEXT_H_
#define OUTRIDER_ENGINE_BATCH_SAVED_TEXT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "outrider/types.h"

namespace outrider {

// Saves a sequence with at least one kept token. tokens: those of the text, the kept ones first.
// The file appears whole or not at all. Returns its bytes. Throws Error.
std::int64_t save_text(const LanguageModel& model, const Sequence& sequence,
                       std::span<const TokenId> tokens, const std::filesystem::path& path);

struct LoadedText {
  std::vector<TokenId> tokens;
  std::unique_ptr<Sequence> sequence;  // all of them are kept
  std::int64_t n_bytes = 0;
};

// Loads a text and runs its last token again. If the bits differ from the file's, the file belongs
// to another model, kernel table or cache type. Throws Error for that, and for a damaged or foreign
// file. make_room (may be empty) is called with the tokens that the KV cache must hold before any
// memory is taken.
LoadedText load_text(LanguageModel& model, const std::filesystem::path& path,
                     const std::function<void(int n_tokens)>& make_room = {});

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_SAVED_TEXT_H_
