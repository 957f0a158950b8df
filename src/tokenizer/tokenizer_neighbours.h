// What stands beside a model's tokenizer: tokenizer_config.json, special_tokens_map.json,
// added_tokens.json and chat_template.jinja. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_TOKENIZER_NEIGHBOURS_H_
#define OUTRIDER_TOKENIZER_TOKENIZER_NEIGHBOURS_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "base/file_folder.h"
#include "tokenizer/json_view.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

class TokenizerNeighbours {
 public:
  // Files that are not there are empty. Throws Error if one is no JSON object.
  explicit TokenizerNeighbours(FileFolder folder);

  JsonView config() const;  // tokenizer_config.json
  // The "added_tokens_decoder" of the configuration.
  std::vector<AddedToken> added_tokens_decoder() const;
  // The same, or without one what added_tokens.json names, of which those are special that a file
  // has a use for. For models whose own file knows no added tokens.
  std::vector<AddedToken> added_tokens() const;
  // Beginning and end tokens, the tokens for templates, and the templates. Throws Error on values
  // of other types; names of tokens that do not exist are warnings.
  void add_to(TokenizerParts& parts) const;

 private:
  FileFolder folder_;
  nlohmann::json config_;
  nlohmann::json map_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_TOKENIZER_NEIGHBOURS_H_
