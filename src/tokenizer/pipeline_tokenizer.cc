#include "tokenizer/pipeline_tokenizer.h"

#include <utility>

#include "outrider/error.h"
#include "tokenizer/utf8.h"

namespace outrider {

const std::string& Tokenizer::special_tokens() const {
  static const std::string none = "{}";
  return none;
}

namespace {

// Positions within a word are 32 bits, and normalising can make a text several times longer.
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 28;

struct EncodeScratch {
  MatchScratch match;
  Bpe::Scratch bpe;
  std::vector<AddedTokens::Span> raw_spans;
  std::vector<AddedTokens::Span> spans;
  std::string normalized;
  CutText cut;
};

std::string_view part_of(std::string_view text, const TextRange& range) {
  return text.substr(range.begin, range.end - range.begin);
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

std::vector<TokenId> PipelineTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<TokenId> ids;
  if (add_special) ids = parts_.surroundings.before;
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  if (text.size() > kMaxTextBytes) {
    throw Error("tokenize", "text", "at most " + std::to_string(kMaxTextBytes) + " bytes",
                std::to_string(text.size()));
  }
  EncodeScratch scratch;
  CutText& cut = scratch.cut;
  parts_.raw_added.split(text, scratch.raw_spans);
  for (const AddedTokens::Span& raw : scratch.raw_spans) {
    if (raw.id != kNoToken) {
      ids.push_back(raw.id);
      continue;
    }
    std::string& normalized = scratch.normalized;
    normalized.assign(part_of(text, raw.range));
    parts_.normalizer.apply(normalized, scratch.match);
    parts_.normalized_added.split(normalized, scratch.spans);
    for (const AddedTokens::Span& span : scratch.spans) {
      if (span.id != kNoToken) {
        ids.push_back(span.id);
        continue;
      }
      cut.text.assign(part_of(normalized, span.range));
      cut.pieces.assign(1, TextRange{0, cut.text.size()});
      cut.at_start = raw.range.begin == 0 && span.range.begin == 0;
      parts_.pre_tokenizer.apply(cut, scratch.match);
      for (const TextRange& piece : cut.pieces) {
        parts_.bpe.encode(part_of(cut.text, piece), parts_.vocabulary, scratch.bpe, ids);
      }
    }
  }
  if (add_special) {
    ids.insert(ids.end(), parts_.surroundings.behind.begin(), parts_.surroundings.behind.end());
  }
  return ids;
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
