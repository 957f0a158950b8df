// SPDX-License-Identifier: Apache-2.0
// The files beside a model's tokenizer: tokenizer_config.json, special_tokens_map.json,
// added_tokens.json and chat_template.jinja. Immutable, thread-safe.
#ifndef OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_NEIGHBOURS_H_
#define OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_NEIGHBOURS_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "base/files/file_folder.h"
#include "tokenizer/formats/json_view.h"
#include "tokenizer/pipeline_tokenizer.h"

namespace outrider {

class TokenizerNeighbours {
 public:
  // Missing files count as empty. Throws Error if one is not a JSON object.
  explicit TokenizerNeighbours(FileFolder folder);

  JsonView config() const;  // tokenizer_config.json
  // The "added_tokens_decoder" of the configuration.
  std::vector<AddedToken> added_tokens_decoder() const;
  // The same, or without one the tokens of added_tokens.json; those to which a file gives a role
  // are special. For models whose own file has no added tokens.
  std::vector<AddedToken> added_tokens() const;
  // Sets beginning and end tokens, the tokens for templates, and the templates. Throws Error on
  // values of other types; names of missing tokens become warnings.
  void add_to(TokenizerParts& parts) const;

 private:
  FileFolder folder_;
  nlohmann::json config_;
  nlohmann::json map_;
};

}  // namespace outrider

#endif  // OUTRIDER_TOKENIZER_FORMATS_TOKENIZER_NEIGHBOURS_H_
