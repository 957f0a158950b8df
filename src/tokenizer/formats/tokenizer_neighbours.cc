// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/formats/tokenizer_neighbours.h"

#include <array>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/hub_cache.h"
#include "outrider/error.h"
#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kMap = "special_tokens_map.json";
constexpr const char* kAddedTokens = "added_tokens.json";

// "<s>" or {"content": "<s>", ...}; kNoToken if it names nothing, or, with a warning, an unknown
// token.
TokenId read_named_token(const JsonView& config, const char* key, TokenizerParts& parts) {
  if (!config.has(key)) return kNoToken;
  const JsonView value = config[key];
  if (!value.is_string() && !value.is_object()) value.fail("a token or an object with its content");
  const std::string& piece = value.is_string() ? value.string() : value["content"].string();
  const TokenId id = parts.vocabulary.find(piece);
  if (id == kNoToken) {
    parts.warnings.push_back(value.place() + " is \"" + piece.substr(0, 80) +
                             "\", which is no token of the vocabulary; it is ignored");
  }
  return id;
}

// A string, or a list of named templates: "default" for chats, "tool_use" for chats with tools.
void read_chat_templates(const JsonView& config, TokenizerParts& parts) {
  if (!config.has("chat_template")) return;
  const JsonView value = config["chat_template"];
  if (value.is_string()) {
    parts.chat_template = value.string();
    return;
  }
  if (!value.is_array()) value.fail("a string or a list of named templates");
  for (const JsonView& one : value.elements()) {
    if (one["name"].string() == "default") parts.chat_template = one["template"].string();
    if (one["name"].string() == "tool_use") parts.tool_template = one["template"].string();
  }
}

// "<s>" or {"content": "<s>", ...}; nullptr for anything else.
const std::string* spelling_of(const nlohmann::json& value) {
  if (value.is_string()) return value.get_ptr<const std::string*>();
  if (!value.is_object()) return nullptr;
  const auto content = value.find("content");
  return content == value.end() ? nullptr : content->get_ptr<const std::string*>();
}

// Adds tokens named in `config` and not in `found`. Values of another form are no tokens for
// templates.
void add_special_tokens(const nlohmann::json& config, nlohmann::ordered_json& found) {
  constexpr std::array kNames = {"bos_token", "eos_token", "unk_token", "sep_token",
                                 "pad_token", "cls_token", "mask_token"};
  for (const char* name : kNames) {
    const auto value = config.find(name);
    if (value == config.end() || found.contains(name)) continue;
    if (const std::string* text = spelling_of(*value)) found[name] = *text;
  }
  const auto more = config.find("additional_special_tokens");
  if (more == config.end() || !more->is_array() || found.contains(more.key())) return;
  for (const nlohmann::json& one : *more) {
    if (const std::string* text = spelling_of(one)) found[more.key()].push_back(*text);
  }
}

// An object; empty if there is no such file.
nlohmann::json read_neighbour(const FileFolder& folder, const char* name) {
  if (!folder.has(name)) return nlohmann::json::object();
  const FileText file = folder.read(name);
  nlohmann::json document = parse_json(file.text(), folder.place(name));
  if (!document.is_object()) JsonView(document, folder.place(name)).fail("an object");
  return document;
}

// The spellings in both files.
std::set<std::string, std::less<>> special_spellings(
    std::initializer_list<const nlohmann::json*> files) {
  nlohmann::ordered_json found = nlohmann::ordered_json::object();
  for (const nlohmann::json* const file : files) add_special_tokens(*file, found);
  std::set<std::string, std::less<>> spellings;
  for (const auto& value : found) {
    if (value.is_string()) {
      spellings.insert(value.get<std::string>());
    } else {
      for (const auto& one : value) spellings.insert(one.get<std::string>());
    }
  }
  return spellings;
}

}  // namespace

TokenizerNeighbours::TokenizerNeighbours(FileFolder folder)
    : folder_(std::move(folder)),
      config_(read_neighbour(folder_, kConfig)),
      map_(read_neighbour(folder_, kMap)) {}

JsonView TokenizerNeighbours::config() const { return {config_, folder_.place(kConfig)}; }

std::vector<AddedToken> TokenizerNeighbours::added_tokens_decoder() const {
  return read_added_tokens_decoder(config());
}

std::vector<AddedToken> TokenizerNeighbours::added_tokens() const {
  if (config().has("added_tokens_decoder")) return added_tokens_decoder();
  const nlohmann::json ids = read_neighbour(folder_, kAddedTokens);
  const std::set<std::string, std::less<>> special = special_spellings({&config_, &map_});
  std::vector<AddedToken> tokens;
  tokens.reserve(ids.size());
  for (auto it = ids.begin(); it != ids.end(); ++it) {
    const JsonView json(*it, folder_.place(kAddedTokens) + ": " + it.key());
    const std::int64_t id = json.integer();
    if (id < 0 || id > INT32_MAX) json.fail("a token id");
    AddedToken token;
    token.id = static_cast<TokenId>(id);
    token.content = it.key();
    token.special = special.contains(it.key());
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenizerNeighbours::add_to(TokenizerParts& parts) const {
  // The configuration is the newer file; the map names the same tokens in older directories.
  nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object();
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  for (const JsonView& json : {config(), JsonView(map_, folder_.place(kMap))}) {
    add_special_tokens(json.raw(), special_tokens);
    if (bos == kNoToken) bos = read_named_token(json, "bos_token", parts);
    if (eos == kNoToken) eos = read_named_token(json, "eos_token", parts);
    if (parts.chat_template.empty()) read_chat_templates(json, parts);
  }
  if (bos != kNoToken) parts.bos = bos;
  if (eos != kNoToken) parts.eos = eos;
  parts.special_tokens =
      special_tokens.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  constexpr const char* kTemplate = "chat_template.jinja";
  if (folder_.has(kTemplate)) {  // if both exist, this one counts
    const FileText file = folder_.read(kTemplate);
    if (!is_valid_utf8(file.text())) {
      throw Error("load tokenizer", folder_.place(kTemplate), "UTF-8 text", "other bytes");
    }
    parts.chat_template = file.text();
  }
}

}  // namespace outrider
