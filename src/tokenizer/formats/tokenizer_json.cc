// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/tokenizer_json.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/files/mapped_file.h"
#include "outrider/error.h"
#include "tokenizer/vocabulary_builder.h"

namespace outrider {
namespace {

const nlohmann::json kNull = nullptr;

JsonView member_or_null(const JsonView& json, const char* key) {
  if (json.has(key)) return json[key];
  return JsonView(kNull, json.place() + ": " + key);
}

TokenId checked_id(const JsonView& json, std::int64_t limit) {
  const std::int64_t id = json.integer();
  if (id < 0 || id >= limit) {
    json.fail("an id below " + std::to_string(limit) + " (for the number of tokens there are)");
  }
  return static_cast<TokenId>(id);
}

AddedToken read_added_token(TokenId id, const JsonView& json) {
  AddedToken token;
  token.id = id;
  token.content = json["content"].string();
  token.single_word = json.boolean_or("single_word", false);
  token.lstrip = json.boolean_or("lstrip", false);
  token.rstrip = json.boolean_or("rstrip", false);
  token.special = json.boolean_or("special", false);
  token.normalized = json.boolean_or("normalized", !token.special);
  return token;
}

std::vector<AddedToken> read_added_tokens(const JsonView& json, std::int64_t id_limit) {
  std::vector<AddedToken> tokens;
  if (json.is_null()) return tokens;
  tokens.reserve(json.raw().size());
  for (const JsonView& one : json.elements()) {
    tokens.push_back(read_added_token(checked_id(one["id"], id_limit), one));
  }
  return tokens;
}

// Old files omit the type; only BPE models have merges, and only Unigram models a list of pieces.
bool is_unigram_model(const JsonView& model) {
  if (!model.has("type")) {
    if (model.has("merges")) return false;
    if (model.has("vocab") && model["vocab"].is_array()) return true;
    model.fail("a model of type BPE or Unigram");
  }
  const std::string& type = component_type(model);
  if (type != "BPE" && type != "Unigram") refuse_component(model, "model", "BPE, Unigram");
  return type == "Unigram";
}

// {"the": 5, ...}
void read_pieces(const JsonView& vocab, std::int64_t id_limit, VocabularyBuilder& builder) {
  for (auto it = vocab.raw().begin(); it != vocab.raw().end(); ++it) {
    const JsonView id(*it, vocab.place());
    if (!it->is_number_integer()) id.fail("an integer id for \"" + it.key().substr(0, 80) + "\"");
    builder.add(checked_id(id, id_limit), it.key()).in_model = true;
  }
}

// [["the", -3.5], ...], by id
std::vector<ScoredPiece> read_scored_pieces(const JsonView& vocab, VocabularyBuilder& builder) {
  std::vector<ScoredPiece> scored;
  scored.reserve(vocab.raw().size());
  for (const nlohmann::json& pair : vocab.raw()) {
    const auto fail = [&](std::string_view expected) {
      JsonView(pair, vocab.place() + "[" + std::to_string(scored.size()) + "]").fail(expected);
    };
    if (!pair.is_array() || pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number()) {
      fail("[\"PIECE\", SCORE]");
    }
    const auto& piece = pair[0].get_ref<const std::string&>();
    if (piece.size() > kLongestPiece_bytes) {
      fail("a piece of up to " + std::to_string(kLongestPiece_bytes) + " bytes");
    }
    const auto id = static_cast<TokenId>(scored.size());
    builder.add(id, piece).in_model = true;
    scored.push_back({id, pair[1].get<double>()});
  }
  return scored;
}

// "a b" or ["a", "b"]
std::pair<std::string_view, std::string_view> read_merge(const nlohmann::json& merge,
                                                         const JsonView& merges, std::size_t rank) {
  if (merge.is_string()) {
    const std::string_view text = merge.get_ref<const std::string&>();
    const std::size_t blank = text.find(' ');
    if (blank != std::string_view::npos && blank > 0 && blank + 1 < text.size() &&
        text.find(' ', blank + 1) == std::string_view::npos) {
      return {text.substr(0, blank), text.substr(blank + 1)};
    }
  } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string()) {
    const auto& left = merge[0].get_ref<const std::string&>();
    const auto& right = merge[1].get_ref<const std::string&>();
    if (!left.empty() && !right.empty()) return {left, right};
  }
  JsonView(merge, merges.place() + "[" + std::to_string(rank) + "]")
      .fail("\"LEFT RIGHT\" or [\"LEFT\", \"RIGHT\"]");
}

// Text may become any piece, including those of special tokens.
Unigram read_unigram(const JsonView& model, const Vocabulary& vocabulary,
                     const std::vector<ScoredPiece>& scored) {
  UnigramOptions options;
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  if (model.has("unk_id")) {
    const std::int64_t id = model["unk_id"].integer();
    if (id < 0 || static_cast<std::uint64_t>(id) >= scored.size()) {
      model["unk_id"].fail("an id of the vocabulary");
    }
    options.unknown = static_cast<TokenId>(id);
  }
  double lowest = std::numeric_limits<double>::infinity();
  for (const ScoredPiece& piece : scored) lowest = std::min(lowest, piece.score);
  options.unknown_score = lowest - kUnknownPenalty;
  return Unigram(vocabulary, scored, options);
}

std::vector<MergeRule> read_merges(const JsonView& json, const Vocabulary& vocabulary,
                                   const BpeOptions& options) {
  if (!json.is_array()) json.fail("an array");
  std::vector<MergeRule> rules;
  rules.reserve(json.raw().size());
  std::string whole;
  for (const nlohmann::json& merge : json.raw()) {
    const auto [left, right] = read_merge(merge, json, rules.size());
    whole = left;
    // A piece that continues a word loses its mark when it merges to the left.
    const std::string& prefix = options.continuing_prefix;
    whole.append(right.starts_with(prefix) ? right.substr(prefix.size()) : right);
    const MergeRule rule{vocabulary.find_in_model(left), vocabulary.find_in_model(right),
                         vocabulary.find_in_model(whole)};
    for (const auto& [piece, id] : {std::pair<std::string_view, TokenId>{left, rule.left},
                                    {right, rule.right},
                                    {whole, rule.result}}) {
      if (id == kNoToken) {
        json.fail("merges of known pieces", "unknown piece \"" + std::string(piece.substr(0, 80)) +
                                                "\" in merge " + std::to_string(rules.size()));
      }
    }
    rules.push_back(rule);
  }
  return rules;
}

Bpe read_bpe(const JsonView& model, const Vocabulary& vocabulary) {
  if (model.has("dropout") &&
      !(model["dropout"].raw().is_number() && model["dropout"].raw().get<double>() == 0.0)) {
    model["dropout"].fail("no dropout (it would make tokens random)");
  }
  BpeOptions options;
  options.byte_fallback = model.boolean_or("byte_fallback", false);
  options.fuse_unknown = model.boolean_or("fuse_unk", false);
  options.ignore_merges = model.boolean_or("ignore_merges", false);
  options.continuing_prefix = model.string_or("continuing_subword_prefix", "");
  options.end_suffix = model.string_or("end_of_word_suffix", "");
  if (model.has("unk_token")) {
    options.unknown = vocabulary.find(model["unk_token"].string());
    if (options.unknown == kNoToken) model["unk_token"].fail("a token of the vocabulary");
  }
  const std::vector<MergeRule> merges = read_merges(model["merges"], vocabulary, options);
  return Bpe::by_rank(vocabulary, merges, std::move(options));
}

// A token of the normalised text is matched, and decoded, in its normalised form.
void add_to_pipeline(const AddedToken& token, TokenizerParts& parts) {
  if (!token.normalized) {
    parts.raw_added.add(token);
    return;
  }
  MatchScratch scratch;
  AddedToken normalized = token;
  parts.normalizer.apply(normalized.content, scratch);
  parts.normalized_added.add(normalized);
  if (normalized.content == token.content) return;
  if (parts.decoded.empty()) {
    for (TokenId id = 0; id < parts.vocabulary.size(); ++id) {
      parts.decoded.push_back(parts.vocabulary[id].piece);
    }
  }
  parts.decoded[static_cast<std::size_t>(token.id)] = std::move(normalized.content);
}

}  // namespace

std::vector<AddedToken> read_added_tokens_decoder(const JsonView& config) {
  std::vector<AddedToken> tokens;
  const JsonView json = member_or_null(config, "added_tokens_decoder");
  if (json.is_null()) return tokens;
  if (!json.is_object()) json.fail("an object");
  for (auto it = json.raw().begin(); it != json.raw().end(); ++it) {
    const std::string& key = it.key();
    TokenId id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc{} || end != key.data() + key.size() || id < 0) {
      json.fail("token ids as keys", std::string("the key ").append(key, 0, 80));
    }
    tokens.push_back(read_added_token(id, JsonView(*it, json.place() + ": " + key)));
  }
  return tokens;
}

TokenizerParts parse_tokenizer_json(std::string_view bytes, const std::string& description,
                                    std::span<const AddedToken> more) {
  const nlohmann::json document = parse_json(bytes, description);
  const JsonView root(document, description);
  if (!root.is_object()) root.fail("an object");
  const JsonView model = root["model"];
  const bool is_unigram = is_unigram_model(model);
  const JsonView vocab = model["vocab"];
  if (is_unigram ? !vocab.is_array() : !vocab.is_object()) {
    vocab.fail(is_unigram ? "a list of pieces and scores" : "an object");
  }
  const JsonView added_json = member_or_null(root, "added_tokens");
  const auto n_named = static_cast<std::int64_t>(
      vocab.raw().size() + (added_json.is_array() ? added_json.raw().size() : 0) + more.size());
  const std::int64_t id_limit = VocabularyBuilder::id_limit(n_named);

  VocabularyBuilder builder(vocab.place());
  std::vector<ScoredPiece> scored;  // for Unigram
  if (is_unigram) {
    scored = read_scored_pieces(vocab, builder);
  } else {
    read_pieces(vocab, id_limit, builder);
  }
  std::vector<AddedToken> added = read_added_tokens(added_json, id_limit);
  std::set<std::string, std::less<>> known;
  for (const AddedToken& token : added) known.insert(token.content);
  for (const AddedToken& token : more) {
    if (known.contains(token.content)) continue;
    if (token.id >= id_limit) {
      root.fail(
          "added tokens (of tokenizer_config.json) with ids below " + std::to_string(id_limit),
          std::to_string(token.id));
    }
    added.push_back(token);
    // A piece in the vocabulary keeps its id.
    if (const auto id = builder.find(token.content)) added.back().id = *id;
  }
  for (const AddedToken& token : added) {
    TokenEntry& entry = builder.add(token.id, token.content);
    entry.special = entry.special || token.special;
    entry.added = true;
  }
  TokenizerParts parts;
  parts.vocabulary = builder.build();
  if (is_unigram) {
    parts.model = read_unigram(model, parts.vocabulary, scored);
  } else {
    parts.model = read_bpe(model, parts.vocabulary);
  }

  parts.normalizer = read_normalizer(member_or_null(root, "normalizer"));
  parts.pre_tokenizer = read_pre_tokenizer(member_or_null(root, "pre_tokenizer"));
  parts.surroundings =
      read_post_processor(member_or_null(root, "post_processor"), parts.vocabulary);
  parts.decoder = read_decoder(member_or_null(root, "decoder"));
  for (const AddedToken& token : added) add_to_pipeline(token, parts);
  return parts;
}

}  // namespace outrider
