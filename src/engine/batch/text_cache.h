// SPDX-License-Identifier: Apache-2.0
// Ended texts that are kept for later ones with the same beginning.
#ifndef OUTRIDER_ENGINE_BATCH_TEXT_CACHE_H_
#define OUTRIDER_ENGINE_BATCH_TEXT_CACHE_H_

#include <cstddef>
#include <functional>
#include <list>

#include "speculate/stream.h"

namespace outrider {

// Drops the least recently used text first, and ends it in its drafter. Not thread-safe.
class TextCache {
 public:
  TextCache() = default;
  TextCache(const TextCache&) = delete;
  TextCache& operator=(const TextCache&) = delete;
  ~TextCache() { limit(0); }

  std::size_t size() const { return texts_.size(); }
  // Sets the maximum number of texts; initially 0.
  void limit(std::size_t n_max);
  // Adds a text. It replaces texts of the same drafter with which it begins, and takes over their
  // names.
  void add(KeptText text);
  // The text that saves the stream most work, among those with the same encoder input, by the
  // length of the common beginning. Texts of the stream's drafter save the drafter's work, too.
  // Texts of other drafters do not count if the stream's drafter reads features. Marks the text as
  // used. Null if none has a token in common. Valid until the next call.
  const KeptText* find(const Stream& stream);
  // That text, or one that replaced it; null if neither is kept.
  const KeptText* find(SequenceId id) const;
  void drop(SequenceId id);
  // Returns false if there is none.
  bool drop_oldest();
  void drop_those_of(const Drafter& drafter);

 private:
  void drop_if(const std::function<bool(const KeptText&)>& goes);

  std::size_t n_max_ = 0;
  std::list<KeptText> texts_;  // the most recently used first
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_BATCH_TEXT_CACHE_H_
