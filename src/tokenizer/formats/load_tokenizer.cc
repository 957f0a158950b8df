// SPDX-License-Identifier: Apache-2.0
// Loads a tokenizer from a path: the kind of file, and the files beside it.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_folder.h"
#include "base/files/hub_cache.h"
#include "base/files/mapped_file.h"
#include "outrider/error.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/formats/sentencepiece_parts.h"
#include "tokenizer/formats/tokenizer_file.h"
#include "tokenizer/formats/tokenizer_json.h"
#include "tokenizer/formats/tokenizer_neighbours.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::shared_ptr<const Tokenizer> load_tokenizer_json(const FileFolder& folder,
                                                     std::string_view name) {
  const TokenizerNeighbours neighbours(folder);
  // Tokens added after training are listed there, but not always in both files.
  const FileText file = folder.read(name);
  TokenizerParts parts =
      parse_tokenizer_json(file.text(), folder.place(name), neighbours.added_tokens_decoder());
  neighbours.add_to(parts);
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

// transformers' classes whose ids differ from the model file's: some tokens come before its pieces,
// or a vocab.json numbers them. Their fast forms, in tokenizer.json, have the right ids.
constexpr std::array kRenumbering = {
    "XLMRobertaTokenizer", "XGLMTokenizer",      "MBartTokenizer",   "MBart50Tokenizer",
    "NllbTokenizer",       "CamembertTokenizer", "BarthezTokenizer", "PLBartTokenizer",
    "PegasusTokenizer",    "MarianTokenizer",    "M2M100Tokenizer",  "Speech2TextTokenizer"};

void require_own_ids(const JsonView& config) {
  if (!config.has("tokenizer_class")) return;
  const JsonView name = config["tokenizer_class"];
  const auto same = [&](const char* one) { return name.string().starts_with(one); };
  if (std::any_of(kRenumbering.begin(), kRenumbering.end(), same)) {
    name.fail("a class that keeps a SentencePiece model's ids (or a tokenizer.json)");
  }
}

// Where the configuration prepends a blank: transformers' LlamaTokenizer and T5Tokenizer do so only
// to the text's beginning, unless "legacy" is set. Files without that flag count as legacy.
SentencePieceSurroundings::Blank blank_of(const JsonView& config) {
  using Blank = SentencePieceSurroundings::Blank;
  if (!config.boolean_or("add_prefix_space", true)) return Blank::kNone;
  return config.boolean_or("legacy", true) ? Blank::kEachStretch : Blank::kText;
}

// The start token, if any, precedes every text unless the configuration says otherwise; the end
// token follows only if it says so.
void add_around(const JsonView& config, TokenizerParts& parts) {
  if (parts.bos != kNoToken && config.boolean_or("add_bos_token", true)) {
    parts.surroundings.before.push_back(parts.bos);
  }
  if (!config.boolean_or("add_eos_token", false)) return;
  if (parts.eos == kNoToken) config["add_eos_token"].fail("an end token to add", "none");
  parts.surroundings.behind.push_back(parts.eos);
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const FileFolder& folder,
                                                    std::string_view name) {
  const TokenizerNeighbours neighbours(folder);
  const JsonView config = neighbours.config();
  require_own_ids(config);
  const FileText file = folder.read(name);
  const SentencePieceModel model = parse_sentencepiece_model(file.text(), folder.place(name));
  const std::vector<AddedToken> added = neighbours.added_tokens();
  SentencePieceSurroundings around{.added = added, .blank = blank_of(config)};
  std::vector<std::string> warnings;
  if (around.blank == SentencePieceSurroundings::Blank::kText && model.single_blanks) {
    // Text between added tokens would lose the blank with which it begins.
    around.blank = SentencePieceSurroundings::Blank::kEachStretch;
    warnings.push_back(config.place() +
                       ": \"legacy\" is taken for true, as the model drops blanks at the ends of a "
                       "text");
  }
  TokenizerParts parts = sentencepiece_parts(model, folder.place(name), around);
  parts.warnings = std::move(warnings);
  neighbours.add_to(parts);
  add_around(config, parts);
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

// Names of a SentencePiece model in a directory; the first one counts.
constexpr std::array kModelNames = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};

constexpr const char* kExpected = "a directory with a tokenizer.json or a tokenizer.model";

// Null if there is none.
const char* tokenizer_file_in(const FileFolder& folder) {
  constexpr const char* kJson = "tokenizer.json";
  if (folder.has(kJson)) return kJson;
  for (const char* const name : kModelNames) {
    if (folder.has(name)) return name;
  }
  return nullptr;
}

// For files that are not GGUF.
std::shared_ptr<const Tokenizer> load_file(const FileFolder& folder, std::string_view name) {
  const fs::path extension = fs::path(name).extension();
  if (extension == ".model" || extension == ".spm") return load_sentencepiece(folder, name);
  return load_tokenizer_json(folder, name);
}

}  // namespace

std::optional<fs::path> find_tokenizer_file(const fs::path& directory) {
  const char* const name = tokenizer_file_in(FileFolder(directory));
  if (name == nullptr) return std::nullopt;
  return directory / name;
}

std::shared_ptr<const Tokenizer> load_tokenizer(const FileFolder& folder) {
  const char* const name = tokenizer_file_in(folder);
  if (name == nullptr) {
    throw Error("load tokenizer", folder.directory().string(), kExpected, "none");
  }
  return load_file(folder, name);
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
  fs::path path = without_hub_cache(given);
  if (fs::is_directory(path)) {
    const std::optional<fs::path> file = find_tokenizer_file(path);
    if (!file) {
      throw Error("load tokenizer", path.string(), kExpected, "none");
    }
    path = *file;
  }
  const FileText file{MappedFile(path)};  // throws Error if missing
  if (file.text().starts_with("GGUF")) return load_gguf_vocabulary(path);
  if (path.extension() == ".gguf") {
    throw Error("load tokenizer", path.string(), "a GGUF file", "another one");
  }
  return load_file(FileFolder(path.parent_path()), path.filename().string());
}

}  // namespace outrider
