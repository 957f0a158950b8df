// From a path to a tokenizer: which kind of file it is, and what stands beside it.
#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/hub_cache.h"
#include "base/mapped_file.h"
#include "outrider/error.h"
#include "tokenizer/gguf_vocabulary.h"
#include "tokenizer/sentencepiece_parts.h"
#include "tokenizer/tokenizer_file.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/tokenizer_neighbours.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::shared_ptr<const Tokenizer> load_tokenizer_json(const fs::path& file) {
  const TokenizerNeighbours neighbours(file.parent_path());
  // Tokens that were added behind the tokenizer's training stand there, not always in both files.
  TokenizerParts parts = parse_tokenizer_json(text_of(MappedFile(file)), file.string(),
                                              neighbours.added_tokens_decoder());
  neighbours.add_to(parts);
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

// Classes of transformers whose ids are not the model file's: some tokens stand before its pieces,
// or a vocab.json numbers them. Their fast forms, in tokenizer.json, have the right ones.
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

// Where the configuration wants a blank: transformers' LlamaTokenizer and T5Tokenizer put one
// before the text alone unless "legacy" is set, as files from before that flag have it.
SentencePieceSurroundings::Blank blank_of(const JsonView& config) {
  using Blank = SentencePieceSurroundings::Blank;
  if (!config.boolean_or("add_prefix_space", true)) return Blank::kNone;
  return config.boolean_or("legacy", true) ? Blank::kEachStretch : Blank::kText;
}

// The beginning token stands before every text, if there is one, unless the configuration says
// otherwise; the end token behind it only if it says so.
void add_around(const JsonView& config, TokenizerParts& parts) {
  if (parts.bos != kNoToken && config.boolean_or("add_bos_token", true)) {
    parts.surroundings.before.push_back(parts.bos);
  }
  if (!config.boolean_or("add_eos_token", false)) return;
  if (parts.eos == kNoToken) config["add_eos_token"].fail("an end token to add", "none");
  parts.surroundings.behind.push_back(parts.eos);
}

std::shared_ptr<const Tokenizer> load_sentencepiece(const fs::path& file) {
  const TokenizerNeighbours neighbours(file.parent_path());
  const JsonView config = neighbours.config();
  require_own_ids(config);
  const SentencePieceModel model =
      parse_sentencepiece_model(text_of(MappedFile(file)), file.string());
  const std::vector<AddedToken> added = neighbours.added_tokens();
  SentencePieceSurroundings around{.added = added, .blank = blank_of(config)};
  std::vector<std::string> warnings;
  if (around.blank == SentencePieceSurroundings::Blank::kText && model.single_blanks) {
    // What stands between added tokens would lose the blank it begins with.
    around.blank = SentencePieceSurroundings::Blank::kEachStretch;
    warnings.push_back(config.place() +
                       ": \"legacy\" is taken for true, as the model drops blanks at the ends of a "
                       "text");
  }
  TokenizerParts parts = sentencepiece_parts(model, file.string(), around);
  parts.warnings = std::move(warnings);
  neighbours.add_to(parts);
  add_around(config, parts);
  return std::make_shared<PipelineTokenizer>(std::move(parts));
}

// Of a SentencePiece model in a directory; the first one counts.
constexpr std::array kModelNames = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model"};

}  // namespace

std::optional<fs::path> find_tokenizer_file(const fs::path& directory) {
  if (is_named(directory / "tokenizer.json")) return directory / "tokenizer.json";
  for (const char* const name : kModelNames) {
    if (is_named(directory / name)) return directory / name;
  }
  return std::nullopt;
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
      throw Error("load tokenizer", path.string(),
                  "a directory with a tokenizer.json or a tokenizer.model", "none");
    }
    path = *file;
  }
  const MappedFile file(path);  // Error if there is none
  if (text_of(file).starts_with("GGUF")) return load_gguf_vocabulary(path);
  if (path.extension() == ".gguf") {
    throw Error("load tokenizer", path.string(), "a GGUF file", "another one");
  }
  if (path.extension() == ".model" || path.extension() == ".spm") return load_sentencepiece(path);
  return load_tokenizer_json(path);
}

}  // namespace outrider
