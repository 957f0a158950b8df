// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/gguf_vocabulary.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_set>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

enum TokenType : std::int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The data about one file that the steps below share.
struct Source {
  const GgufFile& file;
  const std::string& description;
  const std::vector<std::string>& pieces;
  std::vector<std::int64_t> types;  // (n_tokens)
  enum class Kind { kMerges, kLlama, kT5 } kind;
  std::string pre;  // for kinds with merges

  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view got) const {
    throw Error("load tokenizer", description + ": " + std::string(key), expected, got);
  }
  std::size_t n_tokens() const { return pieces.size(); }
};

Source open_source(const GgufFile& file, const std::string& description) {
  const auto fail = [&](const char* key, std::string_view expected, std::string_view got) {
    throw Error("load tokenizer", description + ": " + key, expected, got);
  };
  const std::string* const kind = file.string("tokenizer.ggml.model");
  if (kind == nullptr) fail("tokenizer.ggml.model", "a tokenizer in the metadata", "none");
  const bool is_gemma4 = *kind == "gemma4";
  if (*kind != "gpt2" && *kind != "llama" && *kind != "t5" && !is_gemma4) {
    fail("tokenizer.ggml.model", "a kind this build knows (gpt2, llama, t5, gemma4)", *kind);
  }
  const auto* const pieces = file.strings("tokenizer.ggml.tokens");
  if (pieces == nullptr || pieces->empty()) fail("tokenizer.ggml.tokens", "some tokens", "none");
  if (pieces->size() > INT32_MAX / 2) fail("tokenizer.ggml.tokens", "fewer tokens", "too many");
  const std::string* const named = file.string("tokenizer.ggml.pre");
  Source source{.file = file,
                .description = description,
                .pieces = *pieces,
                .types = {},
                .kind = *kind == "llama" ? Source::Kind::kLlama
                        : *kind == "t5"  ? Source::Kind::kT5
                                         : Source::Kind::kMerges,
                .pre = is_gemma4          ? *kind
                       : named == nullptr ? "default"
                                          : *named};
  const auto* const types = file.integers("tokenizer.ggml.token_type");
  if (types == nullptr) {
    source.types.assign(pieces->size(), kNormal);
  } else if (types->size() != pieces->size()) {
    fail("tokenizer.ggml.token_type", std::to_string(pieces->size()) + " types",
         std::to_string(types->size()));
  } else {
    source.types = *types;
  }
  return source;
}

Vocabulary read_vocabulary(const Source& source) {
  std::vector<TokenEntry> entries(source.n_tokens());
  for (std::size_t id = 0; id < entries.size(); ++id) {
    TokenEntry& entry = entries[id];
    const std::int64_t type = source.types[id];
    entry.piece = source.pieces[id];
    if (entry.piece.empty()) entry.piece = "[EMPTY_" + std::to_string(id) + "]";
    if (!is_valid_utf8(entry.piece)) {
      source.fail("tokenizer.ggml.tokens", "UTF-8 text",
                  "other bytes in token " + std::to_string(id));
    }
    entry.present = true;
    entry.special = type == kControl || type == kUnknown;
    entry.added = entry.special || type == kUserDefined;
    // Special tokens come only from added tokens: text must not merge into one.
    entry.in_model = !entry.special;
  }
  return Vocabulary(std::move(entries), source.description + ": tokenizer.ggml.tokens");
}

// Keys of special tokens; keys unused here are also reported if their id is no token.
constexpr const char* kBos = "tokenizer.ggml.bos_token_id";
constexpr const char* kEos = "tokenizer.ggml.eos_token_id";
constexpr const char* kUnknownToken = "tokenizer.ggml.unknown_token_id";
constexpr const char* kSpecialTokens[] = {
    kBos,
    kEos,
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    kUnknownToken,
    "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.mask_token_id",
    "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.fim_suf_token_id",
    "tokenizer.ggml.fim_mid_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
};

// Ignores an id outside of the vocabulary; gguf_vocabulary_warnings reports it.
TokenId read_id(const Source& source, const char* key, TokenId fallback) {
  const std::int64_t id = source.file.integer(key).value_or(fallback);
  const auto n_tokens = static_cast<std::int64_t>(source.n_tokens());
  if (id >= 0 && id < n_tokens) return static_cast<TokenId>(id);
  return fallback < n_tokens ? fallback : kNoToken;
}

// (n_tokens); all equal if there are none.
std::vector<double> read_scores(const Source& source) {
  const auto* const scores = source.file.reals("tokenizer.ggml.scores");
  std::vector<double> all;
  if (scores == nullptr) {
    all.assign(source.n_tokens(), 0.0);
  } else {
    all = *scores;
  }
  if (all.size() != source.n_tokens()) {
    source.fail("tokenizer.ggml.scores", std::to_string(source.n_tokens()) + " scores",
                std::to_string(all.size()));
  }
  if (std::any_of(all.begin(), all.end(), [](double score) { return !std::isfinite(score); })) {
    source.fail("tokenizer.ggml.scores", "numbers", "NaN or infinity");
  }
  return all;
}

// User-defined tokens are split off before a text is normalised; in the search they score highest,
// as in llama.cpp.
Unigram read_unigram(const Source& source, const Vocabulary& vocabulary, TokenId unknown) {
  const std::vector<double> scores = read_scores(source);
  std::vector<ScoredPiece> pieces;
  double lowest = std::numeric_limits<float>::max();
  for (std::size_t id = 0; id < scores.size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    const std::int64_t type = source.types[id];
    if (type == kNormal) lowest = std::min(lowest, scores[id]);
    if (type == kNormal || type == kUnused) pieces.push_back({token, scores[id]});
    if (type == kUserDefined) pieces.push_back({token, 0.0});
    if (vocabulary[token].piece.size() > kLongestPiece_bytes) {
      source.fail("tokenizer.ggml.tokens",
                  "pieces of up to " + std::to_string(kLongestPiece_bytes) + " bytes",
                  "a longer one, token " + std::to_string(id));
    }
  }
  UnigramOptions options;
  options.unknown = unknown;
  options.unknown_score = static_cast<double>(static_cast<float>(lowest - kUnknownPenalty));
  return Unigram(vocabulary, pieces, options);
}

SentencePieceRules read_rules(const Source& source) {
  constexpr const char* kMap = "tokenizer.ggml.precompiled_charsmap";
  SentencePieceRules rules;
  const auto* const bytes = source.file.integers(kMap);
  if (bytes != nullptr && !bytes->empty()) {
    std::string map;
    map.reserve(bytes->size());
    for (const std::int64_t byte : *bytes) {
      if (byte < INT8_MIN || byte > UINT8_MAX) source.fail(kMap, "bytes", std::to_string(byte));
      map.push_back(static_cast<char>(byte));
    }
    rules.map = std::make_shared<const Charsmap>(map, source.description + ": " + kMap);
  }
  rules.add_blank = source.file.boolean("tokenizer.ggml.add_space_prefix").value_or(false);
  rules.single_blanks =
      source.file.boolean("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
  return rules;
}

Bpe read_scored_bpe(const Source& source, const Vocabulary& vocabulary, TokenId unknown) {
  BpeOptions options;
  options.byte_fallback = true;
  options.unknown = unknown;
  return Bpe::by_score(vocabulary, read_scores(source), std::move(options));
}

Bpe read_merges(const Source& source, const Vocabulary& vocabulary, const GgufPreTokenizer& known) {
  constexpr const char* kKey = "tokenizer.ggml.merges";
  const auto* const merges = source.file.strings(kKey);
  if (merges == nullptr) source.fail(kKey, "a list of merges", "none");
  std::vector<MergeRule> rules;
  rules.reserve(merges->size());
  std::unordered_set<std::uint64_t> seen;
  std::string whole;
  for (const std::string& merge : *merges) {
    // The left half has at least one character, which may be a blank.
    const std::size_t blank = merge.find(' ', 1);
    if (blank == std::string::npos || blank + 1 == merge.size()) {
      source.fail(kKey, "\"LEFT RIGHT\"", "merge \"" + repair_utf8(merge.substr(0, 80)) + "\"");
    }
    const std::string_view left = std::string_view(merge).substr(0, blank);
    const std::string_view right = std::string_view(merge).substr(blank + 1);
    whole.assign(left).append(right);
    const MergeRule rule{vocabulary.find(left), vocabulary.find(right), vocabulary.find(whole)};
    if (rule.left == kNoToken || rule.right == kNoToken || rule.result == kNoToken) {
      source.fail(kKey, "merges of known pieces",
                  "an unknown piece in \"" + repair_utf8(merge.substr(0, 80)) + "\"");
    }
    // For a duplicate pair the first counts here; by_rank takes the last.
    const auto pair =
        static_cast<std::uint64_t>(rule.left) << 32 | static_cast<std::uint64_t>(rule.right);
    if (seen.insert(pair).second) rules.push_back(rule);
  }
  BpeOptions options;
  options.ignore_merges = known.ignores_merges;
  options.byte_fallback = known.plain_spelling;
  options.whole_line_ends = known.whole_line_ends;
  return Bpe::by_rank(vocabulary, rules, std::move(options));
}

const GgufPreTokenizer& named_pre_tokenizer(const Source& source) {
  const GgufPreTokenizer* const known = find_gguf_pre_tokenizer(source.pre);
  if (known == nullptr) {
    source.fail("tokenizer.ggml.pre", "a known name (" + gguf_pre_tokenizer_kinds() + ")",
                source.pre + " (docs/models.md lists all names)");
  }
  return *known;
}

// Sets how words are split, and the normalisation before.
void set_pre_tokenizer(const Source& source, const GgufPreTokenizer& known, TokenizerParts& parts) {
  if (known.composes) {
    parts.normalizer = Normalizer({UnicodeForm{.compose = true, .compatibility = false}});
  }
  if (known.plain_spelling) {
    parts.normalizer = Normalizer({ReplaceAll{Pattern::literal(" "), std::string(kLowerBlock)}});
  }
  std::vector<PreTokenizerStep> steps;
  steps.reserve(known.patterns.size() + 1);
  for (const std::string_view pattern : known.patterns) {
    steps.push_back(
        SplitByPattern{Pattern::regex(pattern, source.description + ": tokenizer.ggml.pre"),
                       SplitBehavior::kIsolated, false});
  }
  if (!known.plain_spelling) steps.push_back(ByteLevelWords{false, false, {}});
  parts.pre_tokenizer = PreTokenizer(std::move(steps));
}

// Phi-3's markers take the white space after them, for which GGUF has no field; llama.cpp decides
// by the model's name.
bool markers_strip_right(const Source& source) {
  const std::string* const name = source.file.string("general.name");
  if (name == nullptr) return false;
  std::string lower;
  for (const char c : *name) lower.push_back(static_cast<char>(std::tolower(c)));
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

void add_special_tokens(const Source& source, TokenizerParts& parts) {
  const bool strip_right = markers_strip_right(source);
  for (std::size_t id = 0; id < source.n_tokens(); ++id) {
    const std::int64_t type = source.types[id];
    if (type != kControl && type != kUnknown && type != kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = source.pieces[id];
    token.rstrip = strip_right && token.content != "<unk>" && token.content != "<s>" &&
                   token.content != "<|endoftext|>";
    parts.raw_added.add(token);
  }
}

int hex_digit(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

// Each token's bytes. plain_spelling: blanks are U+2581 and other characters are themselves, not
// those of the byte-level alphabet.
std::vector<std::string> decoded_pieces(const Source& source, const Vocabulary& vocabulary,
                                        bool plain_spelling) {
  std::vector<std::string> decoded(source.n_tokens());
  for (std::size_t id = 0; id < decoded.size(); ++id) {
    const std::string& piece = vocabulary[static_cast<TokenId>(id)].piece;
    const std::int64_t type = source.types[id];
    const bool is_marker = type == kControl || type == kUnknown || type == kUserDefined;
    std::string& bytes = decoded[id];
    if (type == kByte) {
      if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>' ||
          !std::isxdigit(static_cast<unsigned char>(piece[3])) ||
          !std::isxdigit(static_cast<unsigned char>(piece[4]))) {
        source.fail("tokenizer.ggml.tokens", "a byte token <0xXX>", piece.substr(0, 80));
      }
      bytes.push_back(static_cast<char>(hex_digit(piece[3]) * 16 + hex_digit(piece[4])));
    } else if (!is_marker && plain_spelling) {
      std::string_view rest = piece;
      for (std::size_t at = rest.find(kLowerBlock); at != std::string_view::npos;
           at = rest.find(kLowerBlock)) {
        bytes.append(rest.substr(0, at)).push_back(' ');
        rest.remove_prefix(at + kLowerBlock.size());
      }
      bytes.append(rest);
    } else if (is_marker || !append_bytes_of(piece, bytes)) {
      bytes = piece;
    }
  }
  return decoded;
}

// Adds the token that `flag` requests at one end of every text, if there is one.
void add_around(const Source& source, const char* flag, TokenId token, std::vector<TokenId>& out,
                std::vector<std::string>& warnings) {
  if (token != kNoToken) {
    out.push_back(token);
    return;
  }
  warnings.push_back(source.description + ": " + flag +
                     " is true, and there is no such token; none is added");
}

}  // namespace

std::vector<std::string> gguf_vocabulary_warnings(const GgufFile& file,
                                                  const std::string& description) {
  std::vector<std::string> warnings;
  const std::string* const kind = file.string("tokenizer.ggml.model");
  const auto* const pieces = file.strings("tokenizer.ggml.tokens");
  if (kind == nullptr || pieces == nullptr) return warnings;
  if (*kind == "gpt2" && file.string("tokenizer.ggml.pre") == nullptr) {
    warnings.push_back(description +
                       ": tokenizer.ggml.pre is missing, \"default\" is taken; tokens may differ "
                       "from the model's own");
  }
  for (const char* key : kSpecialTokens) {
    const std::optional<std::int64_t> id = file.integer(key);
    if (!id || (*id >= 0 && static_cast<std::uint64_t>(*id) < pieces->size())) continue;
    warnings.push_back(description + ": " + key + " is " + std::to_string(*id) +
                       ", outside the vocabulary of " + std::to_string(pieces->size()) +
                       " tokens; it is ignored");
  }
  return warnings;
}

TokenizerParts read_gguf_vocabulary(const GgufFile& file, const std::string& description) {
  const Source source = open_source(file, description);
  TokenizerParts parts;
  parts.warnings = gguf_vocabulary_warnings(file, description);
  parts.vocabulary = read_vocabulary(source);
  BeginningToken beginning = BeginningToken::kByDefault;
  bool plain_spelling = true;
  std::vector<DecoderStep> decoder = {DecodeBytes{}};
  switch (source.kind) {
    case Source::Kind::kLlama: {
      parts.model = read_scored_bpe(source, parts.vocabulary, read_id(source, kUnknownToken, 0));
      std::vector<NormalizerStep> steps;
      if (file.boolean("tokenizer.ggml.add_space_prefix").value_or(true)) {
        steps.push_back(PrependText{" "});
        decoder.push_back(DecodeStrip{" ", 1, 0});
      }
      steps.push_back(ReplaceAll{Pattern::literal(" "), std::string(kLowerBlock)});
      parts.normalizer = Normalizer(std::move(steps));
      break;
    }
    case Source::Kind::kT5: {
      parts.model = read_unigram(source, parts.vocabulary, read_id(source, kUnknownToken, 2));
      const SentencePieceRules rules = read_rules(source);
      using FirstMark = DecodeSentencePiece::FirstMark;
      decoder = {DecodeSentencePiece{.byte_tokens = false,
                                     .first_mark = rules.single_blanks ? FirstMark::kVanishFromEach
                                                   : rules.add_blank   ? FirstMark::kVanishes
                                                                       : FirstMark::kStays}};
      parts.normalizer = Normalizer({rules});
      beginning = BeginningToken::kIfAsked;
      break;
    }
    case Source::Kind::kMerges: {
      const GgufPreTokenizer& known = named_pre_tokenizer(source);
      set_pre_tokenizer(source, known, parts);
      parts.model = read_merges(source, parts.vocabulary, known);
      beginning = known.beginning;
      plain_spelling = known.plain_spelling;
      break;
    }
  }
  if (source.kind != Source::Kind::kT5) {
    parts.decoded = decoded_pieces(source, parts.vocabulary, plain_spelling);
  }
  parts.decoder = Decoder(std::move(decoder));
  add_special_tokens(source, parts);

  const bool is_llama = source.kind == Source::Kind::kLlama;
  const bool is_t5 = source.kind == Source::Kind::kT5;
  parts.bos = read_id(source, kBos, is_llama ? 1 : kNoToken);
  parts.eos = read_id(source, kEos, is_llama ? 2 : is_t5 ? 1 : kNoToken);
  constexpr const char* kAddBos = "tokenizer.ggml.add_bos_token";
  constexpr const char* kAddEos = "tokenizer.ggml.add_eos_token";
  if (file.boolean(kAddBos).value_or(beginning == BeginningToken::kByDefault) ||
      beginning == BeginningToken::kAlways) {
    add_around(source, kAddBos, parts.bos, parts.surroundings.before, parts.warnings);
  }
  if (file.boolean(kAddEos).value_or(is_t5)) {
    add_around(source, kAddEos, parts.eos, parts.surroundings.behind, parts.warnings);
  }
  if (const std::string* const text = file.string("tokenizer.chat_template")) {
    if (!is_valid_utf8(*text)) source.fail("tokenizer.chat_template", "UTF-8 text", "other bytes");
    parts.chat_template = *text;
  }
  if (const std::string* const text = file.string("tokenizer.chat_template.tool_use")) {
    if (!is_valid_utf8(*text)) {
      source.fail("tokenizer.chat_template.tool_use", "UTF-8 text", "other bytes");
    }
    parts.tool_template = *text;
  }
  return parts;
}

std::shared_ptr<const Tokenizer> load_gguf_vocabulary(const std::filesystem::path& path) {
  const std::unique_ptr<GgufFile> file = open_gguf(path);
  return std::make_shared<PipelineTokenizer>(read_gguf_vocabulary(*file, path.string()));
}

}  // namespace outrider
