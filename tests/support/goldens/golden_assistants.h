// SPDX-License-Identifier: Apache-2.0
// Golden assistants of Gemma 4, and the drafts that transformers makes with them
// (tests/golden/make/make_assistant_golden.py).
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_ASSISTANTS_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_ASSISTANTS_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/goldens/golden_models.h"

namespace outrider::test {

inline const std::vector<std::string>& golden_assistants() {
  static const std::vector<std::string> names = {"ordered", "whole"};
  return names;
}

struct GoldenAssistant {
  explicit GoldenAssistant(const std::string& name)
      : folder(golden_directory("assistant") / name), logits(golden_logits(folder)) {
    const nlohmann::json json = json_of(folder / "drafts.json");
    target = golden_directory(json["base"].get<std::string>());
    tokens = json["tokens"].get<std::vector<TokenId>>();
    n_text = tokens.size() - logits.size();
  }
  std::vector<TokenId> text() const {
    return {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(n_text)};
  }

  std::filesystem::path folder;  // with the head's own files
  Rows logits;                   // (drafted tokens, vocabulary size): of each of them
  std::filesystem::path target;
  std::vector<TokenId> tokens;  // the text and the tokens drafted after it
  std::size_t n_text = 0;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_ASSISTANTS_H_
