// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "outrider/error.h"
#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/text_map.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {

const std::string& Tokenizer::special_tokens() const {
  static const std::string none = "{}";
  return none;
}

namespace {

// Positions within a word have 32 bits, and normalising can make a text several times longer.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

std::string_view part_of(std::string_view text, const TextRange& range) {
  return text.substr(range.begin, range.end - range.begin);
}

void require_short(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return;
  throw Error("tokenize", "text", "at most " + std::to_string(kMaxTextBytes) + " bytes",
              std::to_string(text.size()));
}

// The parts of `literal` within `span` of a text, as ranges of the span's normalised text.
std::vector<TextRange> literal_in_normalized(std::span<const TextRange> literal,
                                             const TextRange& span, const NormalizedText& map) {
  std::vector<TextRange> out;
  const auto first =
      std::partition_point(literal.begin(), literal.end(),
                           [&](const TextRange& range) { return range.end <= span.begin; });
  for (auto range = first; range != literal.end() && range->begin < span.end; ++range) {
    const TextRange part{std::max(range->begin, span.begin), std::min(range->end, span.end)};
    if (part.begin >= part.end) continue;
    TextRange moved = map.to_normalized({part.begin - span.begin, part.end - span.begin});
    if (!out.empty()) {
      moved.begin = std::max(moved.begin, out.back().end);
      moved.end = std::max(moved.end, moved.begin);
    }
    out.push_back(moved);
  }
  return out;
}

}  // namespace

class PipelineDecoding : public Tokenizer::Decoding {
 public:
  PipelineDecoding(const PipelineTokenizer& tokenizer, bool keep_special)
      : tokenizer_(tokenizer),
        keep_special_(keep_special),
        run_(tokenizer.parts_.decoder.start()) {}
  void push(TokenId id, std::string& out) override {
    const TokenEntry& entry = tokenizer_.entry(id);
    if (entry.special && !keep_special_) return;
    const auto& decoded = tokenizer_.parts_.decoded;
    run_.push(decoded.empty() ? entry.piece : decoded[static_cast<std::size_t>(id)], out);
  }
  void finish(std::string& out) override { run_.finish(out); }

 private:
  const PipelineTokenizer& tokenizer_;
  bool keep_special_;
  DecoderRun run_;
};

struct PipelineTokenizer::EncodeScratch {
  MatchScratch match;
  Bpe::Scratch bpe;
  Unigram::Scratch unigram;
  AddedTokens::Scratch added;
  std::vector<AddedTokens::Span> raw_spans;
  std::vector<AddedTokens::Span> spans;
  std::string normalized;
  Cutting cutting;
  std::string spelled;  // a word in the byte-level alphabet
};

PipelineTokenizer::PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {
  parts_.raw_added.finish();
  parts_.normalized_added.finish();
}

std::vector<TokenId> PipelineTokenizer::encode_with_literals(
    std::string_view text, bool add_special, std::span<const TextRange> literal) const {
  require_ranges(literal, text.size());
  std::vector<TokenId> ids;
  if (add_special) ids = parts_.surroundings.before;
  std::optional<RepairedText> repaired;
  std::vector<TextRange> moved;
  if (!is_valid_utf8(text)) {
    repaired.emplace(text);
    text = repaired->text();
    for (const TextRange& range : literal) moved.push_back(repaired->to_repaired(range));
    literal = moved;
  }
  require_short(text);
  EncodeScratch scratch;
  parts_.raw_added.split(text, literal, scratch.added, scratch.raw_spans);
  for (const AddedTokens::Span& raw : scratch.raw_spans) {
    if (raw.id != kNoToken) {
      ids.push_back(raw.id);
      continue;
    }
    const std::string_view before = part_of(text, raw.range);
    std::string_view normalized = before;
    if (!parts_.normalizer.empty()) {
      scratch.normalized.assign(before);
      parts_.normalizer.apply(scratch.normalized, scratch.match);
      normalized = scratch.normalized;
    }
    parts_.normalized_added.split(normalized, {}, scratch.added, scratch.spans);
    const bool has_token =
        scratch.spans.size() > 1 || (!scratch.spans.empty() && scratch.spans[0].id != kNoToken);
    if (has_token && !literal.empty()) {
      const NormalizedText map(parts_.normalizer, before, scratch.match);
      parts_.normalized_added.split(normalized, literal_in_normalized(literal, raw.range, map),
                                    scratch.added, scratch.spans);
    }
    for (const AddedTokens::Span& span : scratch.spans) {
      if (span.id != kNoToken) {
        ids.push_back(span.id);
        continue;
      }
      const bool at_start = raw.range.begin == 0 && span.range.begin == 0;
      // The normalised form of a literal range may spell an added token, too.
      const bool without_added = !literal.empty();
      encode_words(part_of(normalized, span.range), at_start, without_added, scratch, ids);
    }
  }
  if (add_special) {
    ids.insert(ids.end(), parts_.surroundings.behind.begin(), parts_.surroundings.behind.end());
  }
  return ids;
}

void PipelineTokenizer::encode_words(std::string_view text, bool at_start, bool without_added,
                                     EncodeScratch& scratch, std::vector<TokenId>& ids) const {
  const bool are_bytes = parts_.pre_tokenizer.words_are_bytes();
  const auto encode_word = [&](const Bpe& bpe, std::string_view word) {
    if (are_bytes) {
      bpe.encode_bytes(word, parts_.vocabulary, scratch.bpe, ids);
    } else {
      bpe.encode(word, parts_.vocabulary, scratch.bpe, ids);
    }
  };
  const auto search_word = [&](const Unigram& unigram, std::string_view word) {
    if (are_bytes) {
      scratch.spelled.clear();
      append_byte_level(word, scratch.spelled);
      word = scratch.spelled;
    }
    unigram.encode(word, parts_.vocabulary, without_added, scratch.unigram, ids);
  };
  Cutting& cutting = scratch.cutting;
  cutting.start(parts_.pre_tokenizer, text, at_start);
  for (;;) {
    const std::span<const TextRange> words = cutting.next(scratch.match);
    if (words.empty()) return;
    for (const TextRange& range : words) {
      const std::string_view word = part_of(cutting.text(), range);
      if (const Bpe* const bpe = std::get_if<Bpe>(&parts_.model)) {
        encode_word(*bpe, word);
      } else {
        search_word(std::get<Unigram>(parts_.model), word);
      }
    }
  }
}

std::vector<TextRange> PipelineTokenizer::added_tokens_in(std::string_view text) const {
  std::optional<RepairedText> repaired;
  if (!is_valid_utf8(text)) {
    repaired.emplace(text);
    text = repaired->text();
  }
  require_short(text);
  std::vector<TextRange> found;
  EncodeScratch scratch;
  parts_.raw_added.split(text, {}, scratch.added, scratch.raw_spans);
  for (const AddedTokens::Span& raw : scratch.raw_spans) {
    if (raw.id != kNoToken) {
      found.push_back(raw.spelling);
      continue;
    }
    const std::string_view before = part_of(text, raw.range);
    scratch.normalized.assign(before);
    parts_.normalizer.apply(scratch.normalized, scratch.match);
    parts_.normalized_added.split(scratch.normalized, {}, scratch.added, scratch.spans);
    std::optional<NormalizedText> map;
    for (const AddedTokens::Span& span : scratch.spans) {
      if (span.id == kNoToken) continue;
      if (!map) map.emplace(parts_.normalizer, before, scratch.match);
      const TextRange range = map->to_original(span.spelling);
      found.push_back({raw.range.begin + range.begin, raw.range.begin + range.end});
    }
  }
  if (repaired) {
    for (TextRange& range : found) range = repaired->to_original(range);
  }
  return found;
}

std::unique_ptr<Tokenizer::Decoding> PipelineTokenizer::start_decoding(bool keep_special) const {
  return std::make_unique<PipelineDecoding>(*this, keep_special);
}

const TokenEntry& PipelineTokenizer::entry(TokenId id) const {
  if (!parts_.vocabulary.has(id)) {
    throw Error("decode tokens", "token id",
                "one of a vocabulary of " + std::to_string(vocabulary_size()), std::to_string(id));
  }
  return parts_.vocabulary[id];
}

std::string_view PipelineTokenizer::piece(TokenId id) const { return entry(id).piece; }

std::optional<TokenId> PipelineTokenizer::find(std::string_view piece) const {
  const TokenId id = parts_.vocabulary.find(piece);
  if (id == kNoToken) return std::nullopt;
  return id;
}

std::string PipelineTokenizer::bytes(TokenId id) const {
  const TokenEntry& token = entry(id);
  if (token.special) return {};
  return parts_.decoder.bytes_of(
      parts_.decoded.empty() ? token.piece : parts_.decoded[static_cast<std::size_t>(id)]);
}

}  // namespace outrider
