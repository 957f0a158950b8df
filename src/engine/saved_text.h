// A text on disk with its keys and values: what a later process, with the same model, goes on from.
//
//   "OUTRTEXT"  8 bytes
//   u32         version, 1
//   u32         n_tokens, all of them run
//   i32         (n_tokens) the tokens
//   u64         checksum (base/checksum.h) of what stands before
//   ...         what the model saves (LanguageModel::save), in its pieces
//   u64         checksum that goes on over the pieces
//
// Little-endian, as all machines are that the kernels run on.
#ifndef OUTRIDER_ENGINE_SAVED_TEXT_H_
#define OUTRIDER_ENGINE_SAVED_TEXT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "outrider/types.h"

namespace outrider {

// Of a sequence with at least one kept token; tokens: of the text, those that are kept first. The
// file appears whole or not at all. Returns its bytes. Throws Error.
std::int64_t save_text(const LanguageModel& model, const Sequence& sequence,
                       std::span<const TokenId> tokens, const std::filesystem::path& path);

struct LoadedText {
  std::vector<TokenId> tokens;
  std::unique_ptr<Sequence> sequence;  // all of them are kept
  std::int64_t n_bytes = 0;
};

// Runs the last token anew: where the bits are others than those of the file, it is another model's
// (or another kernel table's, another cache type's), whatever its shape. Throws Error for that, and
// for a file that is damaged or none of these.
// make_room (may be empty) is called with what the KV cache has to hold before it takes any of it.
LoadedText load_text(LanguageModel& model, const std::filesystem::path& path,
                     const std::function<void(int n_tokens)>& make_room = {});

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_SAVED_TEXT_H_
