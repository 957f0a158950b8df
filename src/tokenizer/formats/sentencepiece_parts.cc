// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/sentencepiece_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"
#include "tokenizer/vocabulary_builder.h"

namespace outrider {
namespace {

using Kind = SentencePieceModel::Kind;
using Blank = SentencePieceSurroundings::Blank;

bool is_special(const SentencePiece& piece) {
  return piece.type == PieceType::kControl || piece.type == PieceType::kUnknown;
}

Vocabulary read_vocabulary(const SentencePieceModel& model, const std::string& description,
                           std::span<const AddedToken> added) {
  VocabularyBuilder builder(description);
  for (const SentencePiece& piece : model.pieces) {
    const auto id = static_cast<TokenId>(&piece - model.pieces.data());
    TokenEntry& entry = builder.add(id, piece.text);
    entry.special = is_special(piece);
    entry.added = entry.special || piece.type == PieceType::kUserDefined;
    // Special tokens come only from added tokens: text must not merge into one.
    entry.in_model = !entry.special;
  }
  const std::int64_t id_limit =
      VocabularyBuilder::id_limit(static_cast<std::int64_t>(model.pieces.size() + added.size()));
  for (const AddedToken& token : added) {
    const TokenId id = builder.find(token.content).value_or(token.id);
    if (token.id >= id_limit || id != token.id) {
      throw Error("load tokenizer", description,
                  fmt::format("the added token \"{}\" with {}", token.content,
                              id != token.id ? fmt::format("its piece's id, {}", id)
                                             : fmt::format("an id below {}", id_limit)),
                  fmt::format("{}", token.id));
    }
    TokenEntry& entry = builder.add(id, token.content);
    entry.special = entry.special || token.special;
    entry.added = true;
  }
  return builder.build();
}

// The score of a user-defined symbol of n_bytes: above any text of other pieces, whose scores are
// logarithms of probabilities.
float symbol_score(std::size_t n_bytes, float highest) {
  return static_cast<float>(static_cast<double>(static_cast<float>(n_bytes) * highest) - 0.1);
}

Unigram make_unigram(const SentencePieceModel& model, const Vocabulary& vocabulary,
                     TokenId unknown) {
  float lowest = std::numeric_limits<float>::max();
  float highest = std::numeric_limits<float>::min();  // positive
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type != PieceType::kNormal) continue;
    lowest = std::min(lowest, piece.score);
    highest = std::max(highest, piece.score);
  }
  std::vector<ScoredPiece> scored;
  scored.reserve(model.pieces.size());
  for (const SentencePiece& piece : model.pieces) {
    const auto id = static_cast<TokenId>(&piece - model.pieces.data());
    if (piece.type == PieceType::kNormal) {
      scored.push_back({id, static_cast<double>(piece.score)});
    } else if (piece.type == PieceType::kUserDefined) {
      scored.push_back({id, static_cast<double>(symbol_score(piece.text.size(), highest))});
    }
  }
  UnigramOptions options;
  options.unknown = unknown;
  options.unknown_score = static_cast<double>(lowest - static_cast<float>(kUnknownPenalty));
  options.byte_fallback = model.byte_fallback;
  options.single_precision = true;
  return Unigram(vocabulary, scored, options);
}

Bpe make_bpe(const SentencePieceModel& model, const Vocabulary& vocabulary, TokenId unknown) {
  std::vector<double> scores(static_cast<std::size_t>(vocabulary.size()), Bpe::kNeverMerged);
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SentencePiece& piece = model.pieces[id];
    if (piece.type == PieceType::kNormal && !vocabulary[static_cast<TokenId>(id)].special) {
      scores[id] = static_cast<double>(piece.score);
    }
  }
  BpeOptions options;
  options.byte_fallback = model.byte_fallback;
  options.fuse_unknown = true;
  options.unknown = unknown;
  return Bpe::by_score(vocabulary, scores, std::move(options));
}

SentencePieceRules make_rules(const SentencePieceModel& model, const std::string& description,
                              Blank blank) {
  SentencePieceRules rules;
  if (!model.charsmap.empty()) {
    rules.map = std::make_shared<const Charsmap>(
        model.charsmap, description + ": normalizer_spec: precompiled_charsmap");
  }
  std::vector<PieceTrie::Piece> symbols;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == PieceType::kUserDefined) symbols.push_back({piece.text, 0});
  }
  if (!symbols.empty()) rules.symbols = std::make_shared<const PieceTrie>(std::move(symbols));
  rules.add_blank = model.add_blank && blank == Blank::kEachStretch;
  rules.blank_is_suffix = model.blank_is_suffix;
  rules.single_blanks = model.single_blanks;
  rules.mark_blanks = model.mark_blanks;
  return rules;
}

DecodeSentencePiece make_decoder(const SentencePieceModel& model, Blank blank) {
  using FirstMark = DecodeSentencePiece::FirstMark;
  DecodeSentencePiece decoder;
  decoder.byte_tokens = model.byte_fallback;
  decoder.first_mark = model.single_blanks                        ? FirstMark::kVanishFromEach
                       : model.add_blank && blank != Blank::kNone ? FirstMark::kVanishes
                                                                  : FirstMark::kStays;
  return decoder;
}

// The control token with that spelling; kNoToken if there is none.
TokenId find_control(const SentencePieceModel& model, const std::string& spelling) {
  const auto found =
      std::find_if(model.pieces.begin(), model.pieces.end(), [&](const SentencePiece& piece) {
        return piece.type == PieceType::kControl && piece.text == spelling;
      });
  return found == model.pieces.end() ? kNoToken
                                     : static_cast<TokenId>(found - model.pieces.begin());
}

}  // namespace

TokenizerParts sentencepiece_parts(const SentencePieceModel& model, const std::string& description,
                                   const SentencePieceSurroundings& around) {
  TokenizerParts parts;
  parts.vocabulary = read_vocabulary(model, description, around.added);
  for (const AddedToken& token : around.added) parts.raw_added.add(token);
  TokenId unknown = kNoToken;
  for (const SentencePiece& piece : model.pieces) {
    AddedToken token;
    token.id = static_cast<TokenId>(&piece - model.pieces.data());
    token.content = piece.text;
    if (piece.type == PieceType::kUnknown) unknown = token.id;
    if (is_special(piece)) parts.raw_added.add(token);
    if (piece.type == PieceType::kUserDefined && model.kind == Kind::kBpe) {
      parts.normalized_added.add(token);
    }
  }
  if (model.kind == Kind::kUnigram) {
    parts.model = make_unigram(model, parts.vocabulary, unknown);
  } else {
    parts.model = make_bpe(model, parts.vocabulary, unknown);
  }
  parts.normalizer = Normalizer({make_rules(model, description, around.blank)});
  if (model.add_blank && around.blank == Blank::kText) {
    parts.pre_tokenizer = PreTokenizer({MetaspaceWords{
        std::string(kLowerBlock), MetaspaceWords::Prepend::kFirst, /*split=*/false}});
  }
  parts.decoder = Decoder({make_decoder(model, around.blank)});
  parts.bos = find_control(model, model.beginning);
  parts.eos = find_control(model, model.end);
  return parts;
}

}  // namespace outrider
