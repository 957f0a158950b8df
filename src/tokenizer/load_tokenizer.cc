// From a path to a tokenizer: which kind of file it is, and what stands beside a tokenizer.json.
#include <array>
#include <string>
#include <utility>

#include "base/hub_cache.h"
#include "base/mapped_file.h"
#include "outrider/error.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// "<s>" or {"content": "<s>", ...}; kNoToken if it names nothing, with a warning where there is no
// such token.
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

// A string, or a list of named templates: "default" is the one for chats, "tool_use" the one for
// chats with tools.
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

// What is named in `config` and not in `found`. Whatever has another form is no token for
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

// A file beside tokenizer.json: an object, an empty one where there is no such file.
nlohmann::json read_neighbour(const fs::path& file) {
  if (!is_named(file)) return nlohmann::json::object();
  const MappedFile mapped(file);
  nlohmann::json document = parse_json(text_of(mapped), file.string());
  if (!document.is_object()) JsonView(document, file.string()).fail("an object");
  return document;
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer_json(const fs::path& path) {
  const bool is_directory = fs::is_directory(path);
  const fs::path directory = is_directory ? path : path.parent_path();
  const fs::path file = is_directory ? path / "tokenizer.json" : path;
  if (is_directory && !fs::exists(file)) {
    throw Error("load tokenizer", path.string(), "a directory with a tokenizer.json", "none");
  }
  const fs::path config_file = directory / "tokenizer_config.json";
  const fs::path map_file = directory / "special_tokens_map.json";
  const nlohmann::json config_document = read_neighbour(config_file);
  const nlohmann::json map_document = read_neighbour(map_file);
  const JsonView configuration(config_document, config_file.string());
  // Tokens that were added behind the tokenizer's training stand there, not always in both files.
  TokenizerParts parts = parse_tokenizer_json(text_of(MappedFile(file)), file.string(),
                                              read_added_tokens_decoder(configuration));
  // The configuration is the newer file; the map names the same tokens in older directories.
  nlohmann::ordered_json special_tokens = nlohmann::ordered_json::object();
  for (const JsonView& config : {configuration, JsonView(map_document, map_file.string())}) {
    add_special_tokens(config.raw(), special_tokens);
    if (parts.bos == kNoToken) parts.bos = read_named_token(config, "bos_token", parts);
    if (parts.eos == kNoToken) parts.eos = read_named_token(config, "eos_token", parts);
    if (parts.chat_template.empty()) read_chat_templates(config, parts);
  }
  parts.special_tokens =
      special_tokens.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  const fs::path template_file = directory / "chat_template.jinja";
  if (is_named(template_file)) {  // where there are both, this one counts
    const MappedFile mapped(template_file);
    if (!is_valid_utf8(text_of(mapped))) {
      throw Error("load tokenizer", template_file.string(), "UTF-8 text", "other bytes");
    }
    parts.chat_template = text_of(mapped);
  }
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

const std::vector<std::string>& Tokenizer::warnings() const {
  static const std::vector<std::string> none;
  return none;
}

std::vector<TokenId> Tokenizer::encode_with_literals(std::string_view text, bool add_special,
                                                     std::span<const TextRange> literal) const {
  if (!literal.empty()) {
    throw Error("tokenize", "literal ranges", "a tokenizer that was loaded", "another one");
  }
  return encode(text, add_special);
}

std::vector<TextRange> Tokenizer::added_tokens_in(std::string_view) const { return {}; }

std::shared_ptr<const Tokenizer> Tokenizer::load(const fs::path& given) {
  const fs::path path = without_hub_cache(given);
  if (fs::is_directory(path)) return load_tokenizer_json(path);
  const MappedFile file(path);  // Error if there is none
  if (text_of(file).starts_with("GGUF")) return load_gguf_vocabulary(path);
  if (path.extension() == ".gguf") {
    throw Error("load tokenizer", path.string(), "a GGUF file", "another one");
  }
  return load_tokenizer_json(path);
}

}  // namespace outrider
