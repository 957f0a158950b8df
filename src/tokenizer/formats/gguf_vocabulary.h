// SPDX-License-Identifier: Apache-2.0
// Tokenizers from GGUF metadata (with or without tensors in the file).
//
// Kinds, by tokenizer.ggml.model:
//   gpt2   BPE by tokenizer.ggml.merges, byte-level for nearly all; words are cut by the patterns
//          that tokenizer.ggml.pre names. Qwen's names also compose characters (NFC). A file
//          without a name is cut by "default", with a warning.
//   gemma4 the same under the name gemma4
//   llama  SentencePiece's BPE by tokenizer.ggml.scores: any two neighbours whose concatenation is
//          a piece may merge, the piece of highest score first, the leftmost on ties. A blank is
//          U+2581; one is put before every stretch of ordinary text unless
//          tokenizer.ggml.add_space_prefix is false. A character that is left without a piece
//          becomes byte tokens. If a file has no scores, or they are all equal, the leftmost merge
//          is first.
//   t5     SentencePiece's Unigram by the same scores; texts are rewritten before by
//          tokenizer.ggml.precompiled_charsmap. A blank is put before every stretch of text if
//          tokenizer.ggml.add_space_prefix is true, and consecutive blanks become one if
//          tokenizer.ggml.remove_extra_whitespaces is. There are no byte tokens.
// Control, unknown and user-defined tokens (token_type 3, 2, 4) are found in the raw text; control
// and unknown ones are special. A special token's id outside the vocabulary is ignored, with a
// warning. add_bos_token is true by default for kind llama and for pre-tokenisers whose names imply
// it (Llama 3's for one), add_eos_token for kind t5.
#ifndef OUTRIDER_TOKENIZER_FORMATS_GGUF_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_FORMATS_GGUF_VOCABULARY_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf/gguf.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

// `description` names the file in errors. Throws Error if the metadata have no tokenizer, an
// unknown kind or pre-tokeniser, or are malformed.
TokenizerParts read_gguf_vocabulary(const GgufFile& file, const std::string& description);

// Doubtful points of the tokenizer in `file` that are visible without reading it: kind gpt2 without
// a pre-tokeniser, ids of special tokens outside the vocabulary. One sentence each; a part of the
// warnings of read_gguf_vocabulary.
std::vector<std::string> gguf_vocabulary_warnings(const GgufFile& file,
                                                  const std::string& description);

std::shared_ptr<const Tokenizer> load_gguf_vocabulary(const std::filesystem::path& path);

// Whether a text begins with the beginning token: only if the file's add_bos_token says so; unless
// it says otherwise; always.
enum class BeginningToken { kIfAsked, kByDefault, kAlways };

// The meaning of a name in tokenizer.ggml.pre.
struct GgufPreTokenizer {
  std::string_view names;                       // all names with this meaning, separated by blanks
  std::vector<std::string_view> patterns = {};  // each cuts the pieces left by the ones before it
  bool composes = false;                        // first normalises text to NFC
  BeginningToken beginning = BeginningToken::kIfAsked;
  bool ignores_merges = false;  // a word that is itself a piece is that token
  // Pieces are spelled as text, with U+2581 for a blank, not in the byte-level alphabet; characters
  // without a piece become byte tokens.
  bool plain_spelling = false;
  bool whole_line_ends = false;  // a run of line feeds that is itself a piece is that token
};

// Null for an unknown name.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);
// The first name of each entry, separated by blanks: short enough for a message.
std::string gguf_pre_tokenizer_kinds();
// All known names, separated by blanks.
std::string gguf_pre_tokenizer_names();

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_GGUF_VOCABULARY_H_
