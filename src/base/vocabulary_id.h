// Which vocabulary token ids are of: what files of tokens say, so that no other model reads them.
#ifndef OUTRIDER_BASE_VOCABULARY_ID_H_
#define OUTRIDER_BASE_VOCABULARY_ID_H_

#include <cstdint>

namespace outrider {

// Two vocabularies with the same are taken to mean the same by every id. Made from a tokenizer by
// vocabulary_id() (tokenizer/same_vocabulary.h).
struct VocabularyId {
  std::uint64_t fingerprint = 0;
  int size = 0;  // tokens
  bool operator==(const VocabularyId&) const = default;
};

}  // namespace outrider

#endif  // OUTRIDER_BASE_VOCABULARY_ID_H_
