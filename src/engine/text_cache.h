// Ended texts that are kept for later ones that begin alike.
#ifndef OUTRIDER_ENGINE_TEXT_CACHE_H_
#define OUTRIDER_ENGINE_TEXT_CACHE_H_

#include <cstddef>
#include <functional>
#include <list>

#include "speculate/stream.h"

namespace outrider {

// The text that was longest not of use goes first. Drafters are told of those that go. Not
// thread-safe.
class TextCache {
 public:
  TextCache() = default;
  TextCache(const TextCache&) = delete;
  TextCache& operator=(const TextCache&) = delete;
  ~TextCache() { limit(0); }

  std::size_t size() const { return texts_.size(); }
  // How many there may be; at first none.
  void limit(std::size_t n_most);
  // Takes the place of texts of the same drafter that it begins with, and their names.
  void add(KeptText text);
  // The text that saves the stream most, of those whose encoder read the same, by the tokens that
  // both begin with: those of the stream's drafter save the drafter's work, too. A drafter that
  // reads features has no use for texts of others. It is of use now. Null where none has a token in
  // common. Valid until the next call.
  const KeptText* find(const Stream& stream);
  // That text, or one that took its place; null where neither is there any more.
  const KeptText* find(SequenceId id) const;
  void drop(SequenceId id);
  // false: there is none.
  bool drop_oldest();
  void drop_those_of(const Drafter& drafter);

 private:
  void drop_if(const std::function<bool(const KeptText&)>& goes);

  std::size_t n_most_ = 0;
  std::list<KeptText> texts_;  // the one of use last stands first
};

}  // namespace outrider

#endif  // OUTRIDER_ENGINE_TEXT_CACHE_H_
