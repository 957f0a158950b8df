// SPDX-License-Identifier: Apache-2.0
// Identifies the vocabulary of token ids, so that files of tokens are not read with another model.
#ifndef OUTRIDER_BASE_VOCABULARY_ID_H_
#define OUTRIDER_BASE_VOCABULARY_ID_H_

#include <cstdint>

namespace outrider {

// Two vocabularies with equal ids are assumed to give every id the same meaning. Made from a
// tokenizer by vocabulary_id() (tokenizer/same_vocabulary.h).
struct VocabularyId {
  std::uint64_t fingerprint = 0;
  int size = 0;  // tokens
  bool operator==(const VocabularyId&) const = default;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_VOCABULARY_ID_H_
