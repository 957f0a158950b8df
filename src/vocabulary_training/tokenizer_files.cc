// SPDX-License-Identifier: Apache-2.0
#include "vocabulary_training/tokenizer_files.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kUnknown = 0;
constexpr std::size_t kBegin = 1;
constexpr std::size_t kEnd = 2;

Json added_tokens(std::span<const LearntPiece> pieces) {
  Json tokens = Json::array();
  for (std::size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].kind != PieceKind::kSpecial) continue;
    tokens.push_back({{"id", id},
                      {"content", pieces[id].text},
                      {"single_word", false},
                      {"lstrip", false},
                      {"rstrip", false},
                      {"normalized", false},
                      {"special", true}});
  }
  return tokens;
}

Json replacement(std::string_view what, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", {{"String", what}}}, {"content", content}};
}

Json normalizer() {
  const Json blank_first = {{"type", "Prepend"}, {"prepend", kLowerBlock}};
  return {{"type", "Sequence"},
          {"normalizers", Json::array({blank_first, replacement(" ", kLowerBlock)})}};
}

Json decoder() {
  const Json first_blank = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {{"type", "Sequence"},
          {"decoders", Json::array({replacement(kLowerBlock, " "), Json{{"type", "ByteFallback"}},
                                    Json{{"type", "Fuse"}}, first_blank})}};
}

Json post_processor(const std::string& begin) {
  const auto special = [&begin](int type_id) {
    return Json{{"SpecialToken", {{"id", begin}, {"type_id", type_id}}}};
  };
  const auto text = [](const char* name, int type_id) {
    return Json{{"Sequence", {{"id", name}, {"type_id", type_id}}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", Json::array({special(0), text("A", 0)})},
          {"pair", Json::array({special(0), text("A", 0), special(1), text("B", 1)})},
          {"special_tokens",
           {{begin,
             {{"id", begin}, {"ids", Json::array({kBegin})}, {"tokens", Json::array({begin})}}}}}};
}

Json model(std::span<const LearntPiece> pieces, std::span<const MergeRule> merges) {
  // Each piece occurs once, so the look-up of an insertion by key is not needed.
  Json::object_t vocabulary;
  for (std::size_t id = 0; id < pieces.size(); ++id) vocabulary.push_back({pieces[id].text, id});
  const auto text = [pieces](TokenId id) -> const std::string& {
    return pieces[static_cast<std::size_t>(id)].text;
  };
  Json pairs = Json::array();
  for (const MergeRule& rule : merges) pairs.push_back(text(rule.left) + " " + text(rule.right));
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", pieces[kUnknown].text},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", true},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(pairs)}};
}

std::string dump(const Json& json) { return json.dump(2) + "\n"; }

}  // namespace

std::string tokenizer_json(std::span<const LearntPiece> pieces, std::span<const MergeRule> merges) {
  return dump({{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", added_tokens(pieces)},
               {"normalizer", normalizer()},
               {"pre_tokenizer", nullptr},
               {"post_processor", post_processor(pieces[kBegin].text)},
               {"decoder", decoder()},
               {"model", model(pieces, merges)}});
}

std::string tokenizer_config_json(std::span<const LearntPiece> pieces) {
  // Decoding must restore the text: no blank may be removed before a full stop.
  return dump({{"tokenizer_class", "PreTrainedTokenizerFast"},
               {"add_bos_token", true},
               {"unk_token", pieces[kUnknown].text},
               {"bos_token", pieces[kBegin].text},
               {"eos_token", pieces[kEnd].text},
               {"clean_up_tokenization_spaces", false}});
}

}  // namespace outrider
