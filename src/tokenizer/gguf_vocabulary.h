// Tokenizers from GGUF metadata (a file with a vocabulary and no tensors will do).
//
// Kinds, by tokenizer.ggml.model:
//   gpt2   BPE by tokenizer.ggml.merges, byte-level for nearly all; words are cut by the patterns
//          that tokenizer.ggml.pre names. Qwen's names also say that characters are composed (NFC).
//          A file that names none is cut by "default", with a warning.
//   gemma4 the same with the name gemma4
//   llama  SentencePiece's BPE by tokenizer.ggml.scores: any two neighbours whose concatenation is
//          a piece may merge, the piece of highest score first, the leftmost on ties. A blank is
//          U+2581, one is put before every stretch of ordinary text unless
//          tokenizer.ggml.add_space_prefix is false, and a character that is left without a piece
//          becomes byte tokens. Where a file has no scores, or they are all the same, the leftmost
//          merge goes first.
//   t5     SentencePiece's Unigram by the same scores, texts rewritten before by
//          tokenizer.ggml.precompiled_charsmap. A blank is put before every stretch of text if
//          tokenizer.ggml.add_space_prefix is true, and of several in a row one stays if
//          tokenizer.ggml.remove_extra_whitespaces is. There are no byte tokens.
// Control, unknown and user-defined tokens (token_type 3, 2, 4) are found in the text as they
// stand; control and unknown ones are special. An id that is named for a special token and is none
// of the vocabulary's is ignored, with a warning. add_bos_token is true by default for kind llama
// and the pre-tokenisers whose names say so (Llama 3's for one), add_eos_token for kind t5.
#ifndef OUTRIDER_TOKENIZER_GGUF_VOCABULARY_H_
#define OUTRIDER_TOKENIZER_GGUF_VOCABULARY_H_

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

// `description` names the file in errors. Throws Error if the metadata hold no tokenizer, one of an
// unknown kind or with an unknown pre-tokeniser, or are malformed.
TokenizerParts read_gguf_vocabulary(const GgufFile& file, const std::string& description);

// What is doubtful about the tokenizer in `file` and can be told without reading it: a kind gpt2
// that names no pre-tokeniser, ids of special tokens outside the vocabulary. One sentence each;
// part of what read_gguf_vocabulary has in its warnings.
std::vector<std::string> gguf_vocabulary_warnings(const GgufFile& file,
                                                  const std::string& description);

std::shared_ptr<const Tokenizer> load_gguf_vocabulary(const std::filesystem::path& path);

// Whether a text begins with the beginning token: not unless the file's add_bos_token says so;
// unless it says otherwise; whatever it says.
enum class BeginningToken { kIfAsked, kByDefault, kAlways };

// What a name in tokenizer.ggml.pre stands for.
struct GgufPreTokenizer {
  std::string_view names;                       // all that mean this, separated by blanks
  std::vector<std::string_view> patterns = {};  // each cuts what the ones before it left
  bool composes = false;                        // before, text is brought to Unicode's form NFC
  BeginningToken beginning = BeginningToken::kIfAsked;
  bool ignores_merges = false;  // a word that is itself a piece is that token
  // Pieces are spelled as they are, a blank as U+2581, not in the byte-level alphabet; characters
  // without a piece become byte tokens.
  bool plain_spelling = false;
  bool whole_line_ends = false;  // a run of line feeds that is itself a piece is that token
};

// Null if the name is unknown.
const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name);
// The first name for each way to cut, separated by blanks: short enough for a message.
std::string gguf_pre_tokenizer_kinds();
// All known names, separated by blanks.
std::string gguf_pre_tokenizer_names();

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_GGUF_VOCABULARY_H_
