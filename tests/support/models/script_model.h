// SPDX-License-Identifier: Apache-2.0
// A model that replies with a text chosen by the test: for a script's name it writes the script.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_SCRIPT_MODEL_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_SCRIPT_MODEL_H_

#include <cstddef>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/models/chain_model.h"

namespace outrider::test {

// For the message "NAME" the model writes scripts.at(NAME) and ends its turn.
using Scripts = std::map<std::string, std::string>;

inline constexpr const char* kScriptTemplate =
    "{% if tools %}tools: {{ tools | tojson }} answer <tool_call>\n{\"name\": n}\n</tool_call>\n"
    "{% endif %}{% for message in messages %}{{ message['role'] + ': ' + message['content'] + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|go ' + messages[-1]['content'] + '|>' "
    "}}{% endif %}{# <think> </think> #}";

// Every byte is a token, so that any prompt can be encoded. Scripts are cut into pieces; each piece
// is a separate token with one successor. The script "nan" has no logits.
inline void write_script_model(const Scripts& scripts, const std::filesystem::path& directory) {
  ChainVocabulary vocabulary;
  std::set<std::string> taken;
  const auto add = [&](const std::string& piece) {
    taken.insert(piece);
    vocabulary.pieces.push_back(piece);
    return static_cast<int>(vocabulary.pieces.size()) - 1;
  };
  for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
  const int end = add("<|end|>");
  vocabulary.added["<|end|>"] = true;
  std::map<int, int> next;
  int nan_token = -1;
  for (const auto& [name, text] : scripts) {
    const std::string go = "<|go " + name + "|>";
    int last = add(go);
    vocabulary.added[go] = true;
    if (name == "nan") nan_token = last;
    std::vector<std::string> pieces;
    for (std::size_t begin = 0; begin < text.size();) {
      std::string piece = text.substr(begin, 3);
      while (begin + piece.size() < text.size() && taken.contains(piece)) {
        piece += text[begin + piece.size()];
      }
      begin += piece.size();
      for (; taken.contains(piece); pieces.pop_back()) {  // only at the end
        taken.erase(pieces.back());
        piece = pieces.back() + piece;
      }
      taken.insert(piece);
      pieces.push_back(piece);
    }
    for (const std::string& piece : pieces) {
      const int id = add(piece);
      next[last] = id;
      last = id;
    }
    next[last] = end;
  }
  const std::size_t n = vocabulary.pieces.size();
  std::vector<int> follows(n, end);
  std::set<int> targets = {end};
  for (const auto& [from, to] : next) follows[static_cast<std::size_t>(from)] = to;
  ChainModel model = make_chain_model(follows);
  model.config["max_position_embeddings"] = 2048;
  model.config["eos_token_id"] = end;
  if (nan_token >= 0) {
    auto& values = model.tensors["model.embed_tokens.weight"].second;
    values[static_cast<std::size_t>(nan_token) * (n + 1)] = std::numeric_limits<float>::quiet_NaN();
  }
  write_chain(model, tokenizer_of(vocabulary), directory);
  write_json({{"chat_template", kScriptTemplate}, {"eos_token", "<|end|>"}},
             directory / "tokenizer_config.json");
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_SCRIPT_MODEL_H_
