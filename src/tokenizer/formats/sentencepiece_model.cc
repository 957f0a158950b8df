// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/sentencepiece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "io/protobuf.h"
#include "outrider/error.h"
#include "tokenizer/merging/bpe.h"
#include "tokenizer/merging/unigram.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load tokenizer";

std::string text_of(const ProtobufReader& field) {
  const std::string_view text = field.bytes();
  if (!is_valid_utf8(text)) throw Error(kOperation, field.where(), "UTF-8 text", "other bytes");
  return std::string(text);
}

// message SentencePiece
SentencePiece read_piece(std::string_view bytes, const std::string& place) {
  SentencePiece piece;
  for (ProtobufReader field(bytes, place); field.next();) {
    switch (field.number()) {
      case 1:
        piece.text = text_of(field);
        break;
      case 2:
        piece.score = field.real();
        if (!std::isfinite(piece.score)) {
          throw Error(kOperation, field.where(), "a finite score", fmt::format("{}", piece.score));
        }
        break;
      case 3: {
        const std::int32_t type = field.integer();
        if (type < 1 || type > 6) {
          throw Error(kOperation, field.where(), "a type of piece from 1 to 6",
                      fmt::format("{}", type));
        }
        piece.type = static_cast<PieceType>(type);
        break;
      }
      default:
        break;
    }
  }
  if (piece.text.empty()) throw Error(kOperation, place, "a piece of some text", "none");
  if (piece.text.size() > kLongestPiece_bytes) {
    throw Error(kOperation, place, fmt::format("a piece of up to {} bytes", kLongestPiece_bytes),
                fmt::format("{}", piece.text.size()));
  }
  return piece;
}

// message TrainerSpec
void read_trainer(std::string_view bytes, const std::string& place, SentencePieceModel& model) {
  for (ProtobufReader field(bytes, place); field.next();) {
    switch (field.number()) {
      case 3: {
        const std::int32_t kind = field.integer();
        if (kind != 1 && kind != 2) {
          throw Error(kOperation, field.where(), "a model of kind Unigram (1) or BPE (2)",
                      kind == 3   ? "words (3)"
                      : kind == 4 ? "characters (4)"
                                  : fmt::format("{}", kind));
        }
        model.kind = static_cast<SentencePieceModel::Kind>(kind);
        break;
      }
      case 24:
        model.blank_is_suffix = field.boolean();
        break;
      case 35:
        model.byte_fallback = field.boolean();
        break;
      case 46:
        if (!field.bytes().empty()) model.beginning = text_of(field);
        break;
      case 47:
        if (!field.bytes().empty()) model.end = text_of(field);
        break;
      default:
        break;
    }
  }
}

// message NormalizerSpec
void read_normalizer(std::string_view bytes, const std::string& place, SentencePieceModel& model) {
  for (ProtobufReader field(bytes, place); field.next();) {
    switch (field.number()) {
      case 2:
        model.charsmap = field.bytes();
        break;
      case 3:
        model.add_blank = field.boolean();
        break;
      case 4:
        model.single_blanks = field.boolean();
        break;
      case 5:
        model.mark_blanks = field.boolean();
        break;
      default:
        break;
    }
  }
}

// The same message for decoded texts. Without a table it has no effect.
void require_no_denormalizer(std::string_view bytes, const std::string& place) {
  for (ProtobufReader field(bytes, place); field.next();) {
    if (field.number() != 2 || field.bytes().empty()) continue;
    throw Error(kOperation, field.where(), "a model that leaves decoded texts as they are",
                "a table of rewrites for them");
  }
}

// The byte of "<0xXX>"; -1 for any other text.
int byte_of(std::string_view text) {
  if (text.size() != 6) return -1;
  int byte = -1;
  std::from_chars(text.data() + 3, text.data() + 5, byte, 16);
  return byte >= 0 && text == byte_token_piece(byte) ? byte : -1;
}

void require_complete(const SentencePieceModel& model, const std::string& description) {
  const auto fail = [&](const std::string& expected, const std::string& got) {
    throw Error(kOperation, description, expected, got);
  };
  if (model.pieces.empty()) fail("some pieces", "none");
  const auto n_unknown =
      std::count_if(model.pieces.begin(), model.pieces.end(),
                    [](const SentencePiece& piece) { return piece.type == PieceType::kUnknown; });
  if (n_unknown != 1) fail("one unknown piece", fmt::format("{}", n_unknown));
  std::bitset<256> bytes;
  for (const SentencePiece& piece : model.pieces) {
    if (piece.type == PieceType::kUnused && model.kind == SentencePieceModel::Kind::kBpe) {
      fail("a BPE model without unused pieces", fmt::format("\"{}\"", piece.text));
    }
    if (piece.type != PieceType::kByte) continue;
    if (!model.byte_fallback) {
      fail("no byte pieces (without byte_fallback)", fmt::format("\"{}\"", piece.text));
    }
    const int byte = byte_of(piece.text);
    if (byte < 0) fail("byte pieces <0x00> to <0xFF>", fmt::format("\"{}\"", piece.text));
    bytes.set(static_cast<std::size_t>(byte));
  }
  if (model.byte_fallback && !bytes.all()) {
    fail("256 byte pieces (for byte_fallback)", fmt::format("{}", bytes.count()));
  }
}

// Llama 3's tokenizer.model is of this kind: each line has a base64 token and its rank.
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, std::min(bytes.find('\n'), bytes.size()));
  constexpr std::string_view kBase64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  const std::size_t blank = line.find_first_not_of(kBase64);
  return blank != std::string_view::npos && blank > 0 && line[blank] == ' ' &&
         blank + 1 < line.size() &&
         line.find_first_not_of("0123456789", blank + 1) == std::string_view::npos;
}

}  // namespace

SentencePieceModel parse_sentencepiece_model(std::string_view bytes,
                                             const std::string& description) {
  if (is_tiktoken(bytes)) {
    throw Error(kOperation, description, "a SentencePiece model",
                "ranks of tiktoken (the tokenizer.json of that model loads)");
  }
  SentencePieceModel model;
  std::string place;
  const auto within = [&](std::string_view what) -> const std::string& {
    return place.assign(description).append(": ").append(what);
  };
  for (ProtobufReader field(bytes, description); field.next();) {
    switch (field.number()) {
      case 1:
        fmt::format_to(std::back_inserter(place.assign(description)), ": piece {}",
                       model.pieces.size());
        model.pieces.push_back(read_piece(field.bytes(), place));
        break;
      case 2:
        read_trainer(field.bytes(), within("trainer_spec"), model);
        break;
      case 3:
        read_normalizer(field.bytes(), within("normalizer_spec"), model);
        break;
      case 5:
        require_no_denormalizer(field.bytes(), within("denormalizer_spec"));
        break;
      default:
        break;
    }
  }
  require_complete(model, description);
  return model;
}

}  // namespace outrider
