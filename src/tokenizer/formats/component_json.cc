// SPDX-License-Identifier: Apache-2.0
// The components of a tokenizer.json: JSON -> normaliser, pre-tokeniser, decoder, post-processor.
#include <array>
#include <cstdint>
#include <iterator>
#include <memory>

#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/patterns/cutting_patterns.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// RFC 4648, section 4, with padding.
std::string read_base64(const JsonView& json) {
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::array<std::int8_t, 256> digits{};
  digits.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  std::string_view text = json.string();
  if (text.size() % 4 != 0) json.fail("base64, four characters to three bytes", "other lengths");
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (const char c : text) {
    const int digit = digits[static_cast<unsigned char>(c)];
    if (digit < 0) json.fail("base64", "other characters");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes.push_back(static_cast<char>(bits >> n_bits & 0xFF));
  }
  return bytes;
}

void append_normalizer(const JsonView& json, std::vector<NormalizerStep>& steps) {
  if (json.is_null()) return;
  const std::string& type = component_type(json);
  if (type == "Sequence") {
    for (const JsonView& one : json["normalizers"].elements()) append_normalizer(one, steps);
  } else if (type == "Prepend") {
    steps.push_back(PrependText{json["prepend"].string()});
  } else if (type == "Replace") {
    steps.push_back(ReplaceAll{read_pattern(json["pattern"]), json["content"].string()});
  } else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    steps.push_back(UnicodeForm{type.back() == 'C', type.size() == 4});
  } else if (type == "Lowercase") {
    steps.push_back(LowercaseText{});
  } else if (type == "Strip") {
    steps.push_back(
        StripWhitespace{json.boolean_or("strip_left", true), json.boolean_or("strip_right", true)});
  } else if (type == "StripAccents") {
    steps.push_back(StripMarks{});
  } else if (type == "ByteLevel") {
    steps.push_back(SpellBytes{});
  } else if (type == "Precompiled") {
    const JsonView map = json["precompiled_charsmap"];
    steps.push_back(MapGraphemes{std::make_shared<const Charsmap>(read_base64(map), map.place())});
  } else if (type == "Nmt") {
    steps.push_back(CleanControls{});
  } else {
    refuse_component(json, "normalizer",
                     "Sequence, Prepend, Replace, NFC, NFD, NFKC, NFKD, Lowercase, Strip, "
                     "StripAccents, ByteLevel, Precompiled, Nmt");
  }
}

SplitBehavior read_behavior(const JsonView& json) {
  const std::string& name = json.string();
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  json.fail("Isolated, Removed, Contiguous, MergedWithPrevious or MergedWithNext");
}

// Metaspace, as pre-tokeniser and as decoder, with its old field (add_prefix_space) and its new one
// (prepend_scheme).
struct MetaspaceFields {
  std::string replacement;
  MetaspaceWords::Prepend prepend = MetaspaceWords::Prepend::kAlways;
};

MetaspaceFields read_metaspace(const JsonView& json) {
  using Prepend = MetaspaceWords::Prepend;
  MetaspaceFields fields;
  fields.replacement = json.string_or("replacement", kLowerBlock);
  if (!is_one_character(fields.replacement)) json["replacement"].fail("one character");
  if (!json.boolean_or("add_prefix_space", true)) fields.prepend = Prepend::kNever;
  if (json.has("prepend_scheme")) {
    const JsonView scheme = json["prepend_scheme"];
    if (scheme.string() == "always") {
      fields.prepend = Prepend::kAlways;
    } else if (scheme.string() == "first") {
      fields.prepend = Prepend::kFirst;
    } else if (scheme.string() == "never") {
      fields.prepend = Prepend::kNever;
    } else {
      scheme.fail("always, first or never");
    }
  }
  return fields;
}

void append_pre_tokenizer(const JsonView& json, std::vector<PreTokenizerStep>& steps) {
  if (json.is_null()) return;
  const std::string& type = component_type(json);
  if (type == "Sequence") {
    for (const JsonView& one : json["pretokenizers"].elements()) append_pre_tokenizer(one, steps);
  } else if (type == "ByteLevel") {
    ByteLevelWords words;
    words.add_prefix_space = json.boolean_or("add_prefix_space", true);
    words.use_regex = json.boolean_or("use_regex", true);
    if (words.use_regex) words.pattern = Pattern::regex(cut::kGpt2, json.place());
    steps.push_back(std::move(words));
  } else if (type == "Split") {
    steps.push_back(SplitByPattern{read_pattern(json["pattern"]), read_behavior(json["behavior"]),
                                   json.boolean_or("invert", false)});
  } else if (type == "Metaspace") {
    MetaspaceFields fields = read_metaspace(json);
    steps.push_back(MetaspaceWords{std::move(fields.replacement), fields.prepend,
                                   json.boolean_or("split", true)});
  } else if (type == "Digits") {
    steps.push_back(SplitByClass{is_numeric, json.boolean_or("individual_digits", false)
                                                 ? SplitBehavior::kIsolated
                                                 : SplitBehavior::kContiguous});
  } else if (type == "Punctuation") {
    steps.push_back(SplitByClass{is_punctuation, json.has("behavior")
                                                     ? read_behavior(json["behavior"])
                                                     : SplitBehavior::kIsolated});
  } else if (type == "Whitespace") {
    steps.push_back(SplitWords{});
  } else if (type == "WhitespaceSplit") {
    steps.push_back(SplitByClass{is_white_space, SplitBehavior::kRemoved});
  } else if (type == "CharDelimiterSplit") {
    const JsonView delimiter = json["delimiter"];
    if (!is_one_character(delimiter.string())) delimiter.fail("one character");
    steps.push_back(
        SplitByPattern{Pattern::literal(delimiter.string()), SplitBehavior::kRemoved, false});
  } else {
    refuse_component(json, "pre-tokenizer",
                     "Sequence, ByteLevel, Split, Metaspace, Digits, Punctuation, Whitespace, "
                     "WhitespaceSplit, CharDelimiterSplit");
  }
}

int read_count(const JsonView& json, const char* key) {
  const std::int64_t count = json[key].integer();
  if (count < 0 || count > 1000) json[key].fail("a count up to 1000");
  return static_cast<int>(count);
}

void append_decoder(const JsonView& json, std::vector<DecoderStep>& steps) {
  const std::string& type = component_type(json);
  if (type == "Sequence") {
    for (const JsonView& one : json["decoders"].elements()) append_decoder(one, steps);
  } else if (type == "ByteLevel") {
    steps.push_back(DecodeByteLevel{});
  } else if (type == "Replace") {
    steps.push_back(DecodeReplace{read_pattern(json["pattern"]), json["content"].string()});
  } else if (type == "ByteFallback") {
    steps.push_back(DecodeByteFallback{});
  } else if (type == "Fuse") {
    steps.push_back(DecodeFuse{});
  } else if (type == "Strip") {
    const JsonView content = json["content"];
    if (!is_one_character(content.string())) content.fail("one character");
    steps.push_back(
        DecodeStrip{content.string(), read_count(json, "start"), read_count(json, "stop")});
  } else if (type == "Metaspace") {
    MetaspaceFields fields = read_metaspace(json);
    steps.push_back(DecodeMetaspace{std::move(fields.replacement),
                                    fields.prepend != MetaspaceWords::Prepend::kNever});
  } else if (type == "BPEDecoder") {
    steps.push_back(DecodeSuffix{json.string_or("suffix", "</w>")});
  } else {
    refuse_component(json, "decoder",
                     "Sequence, ByteLevel, Replace, ByteFallback, Fuse, Strip, Metaspace, "
                     "BPEDecoder");
  }
}

TokenId read_id(const JsonView& json, const Vocabulary& vocabulary) {
  const std::int64_t id = json.integer();
  if (id < 0 || id >= vocabulary.size() || !vocabulary.has(static_cast<TokenId>(id))) {
    json.fail("an id of the vocabulary");
  }
  return static_cast<TokenId>(id);
}

// {"single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}], "special_tokens": ...}
void append_template(const JsonView& json, const Vocabulary& vocabulary, Surroundings& around) {
  std::vector<TokenId> before;
  std::vector<TokenId> behind;
  bool seen_text = false;
  const JsonView single = json["single"];
  for (const JsonView& item : single.elements()) {
    if (item.has("Sequence")) {
      if (seen_text || item["Sequence"]["id"].string() != "A") single.fail("sequence A just once");
      seen_text = true;
      continue;
    }
    if (!item.has("SpecialToken")) item.fail("SpecialToken or Sequence");
    const std::string& name = item["SpecialToken"]["id"].string();
    for (const JsonView& id : json["special_tokens"][name.c_str()]["ids"].elements()) {
      (seen_text ? behind : before).push_back(read_id(id, vocabulary));
    }
  }
  if (!seen_text) single.fail("sequence A just once");
  around.before.insert(around.before.begin(), before.begin(), before.end());
  around.behind.insert(around.behind.end(), behind.begin(), behind.end());
}

TokenId read_pair(const JsonView& json, const Vocabulary& vocabulary) {  // ["[CLS]", 101]
  const std::vector<JsonView> pair = json.elements();
  if (pair.size() != 2) json.fail("a token and its id");
  return read_id(pair[1], vocabulary);
}

void append_post_processor(const JsonView& json, const Vocabulary& vocabulary,
                           Surroundings& around) {
  if (json.is_null()) return;
  const std::string& type = component_type(json);
  if (type == "Sequence") {
    for (const JsonView& one : json["processors"].elements()) {
      append_post_processor(one, vocabulary, around);
    }
  } else if (type == "TemplateProcessing") {
    append_template(json, vocabulary, around);
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    around.before.insert(around.before.begin(), read_pair(json["cls"], vocabulary));
    around.behind.push_back(read_pair(json["sep"], vocabulary));
  } else if (type != "ByteLevel") {  // that one only moves offsets
    refuse_component(json, "post-processor",
                     "Sequence, TemplateProcessing, ByteLevel, BertProcessing, RobertaProcessing");
  }
}

}  // namespace

const std::string& component_type(const JsonView& json) { return json["type"].string(); }

void refuse_component(const JsonView& json, std::string_view kind, std::string_view known) {
  json.fail("a " + std::string(kind) + " this build knows (" + std::string(known) + ")",
            component_type(json));
}

Pattern read_pattern(const JsonView& json) {
  if (json.is_object() && json.raw().size() == 1) {
    if (json.has("String")) return Pattern::literal(json["String"].string());
    if (json.has("Regex")) return Pattern::regex(json["Regex"].string(), json.place());
  }
  json.fail("a pattern, {\"String\": ...} or {\"Regex\": ...}");
}

Normalizer read_normalizer(const JsonView& json) {
  std::vector<NormalizerStep> steps;
  append_normalizer(json, steps);
  return Normalizer(std::move(steps));
}

PreTokenizer read_pre_tokenizer(const JsonView& json) {
  std::vector<PreTokenizerStep> steps;
  append_pre_tokenizer(json, steps);
  return PreTokenizer(std::move(steps));
}

Decoder read_decoder(const JsonView& json) {
  std::vector<DecoderStep> steps;
  if (json.is_null()) {
    steps.push_back(DecodeJoin{});
  } else {
    append_decoder(json, steps);
  }
  return Decoder(std::move(steps));
}

Surroundings read_post_processor(const JsonView& json, const Vocabulary& vocabulary) {
  Surroundings around;
  append_post_processor(json, vocabulary, around);
  return around;
}

}  // namespace outrider
