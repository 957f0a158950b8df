// SPDX-License-Identifier: Apache-2.0
// A small byte-level BPE vocabulary for generated models.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_TINY_TOKENIZER_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_TINY_TOKENIZER_H_

#include <string>
#include <utility>
#include <vector>

namespace outrider::test {

// Token 0 begins a text, token 1 ends it. Tokens 2 to 257 are the bytes (in GPT-2's spelling). The
// others come from merges in their order; unused ones fill the rest.
struct TinyVocabulary {
  std::vector<std::string> tokens;                          // (vocabulary_size)
  std::vector<std::pair<std::string, std::string>> merges;  // in order of rank
  int n_unused = 0;                                         // at the end of tokens
};

// vocabulary_size >= 258. Deterministic.
TinyVocabulary make_tiny_vocabulary(int vocabulary_size);

// The vocabulary as a Hugging Face tokenizer.json. Encoding puts the begin token first.
std::string tokenizer_json(const TinyVocabulary& vocabulary);

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_TINY_TOKENIZER_H_
