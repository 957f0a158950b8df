// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/text_cache.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace outrider {
namespace {

void forget(const KeptText& text) {
  if (text.drafter != nullptr) text.drafter->end(text.id);
}

}  // namespace

void TextCache::limit(std::size_t n_max) {
  n_max_ = n_max;
  while (texts_.size() > n_max_) drop_oldest();
}

void TextCache::add(KeptText text) {
  drop_if([&text](const KeptText& other) {
    const bool goes = other.drafter == text.drafter &&
                      other.encoder_tokens == text.encoder_tokens &&
                      other.tokens.size() <= text.tokens.size() &&
                      other.sequence->n_kept() <= text.sequence->n_kept() &&
                      std::equal(other.tokens.begin(), other.tokens.end(), text.tokens.begin());
    if (goes) {
      text.stands_for.push_back(other.id);
      text.stands_for.insert(text.stands_for.end(), other.stands_for.begin(),
                             other.stands_for.end());
    }
    return goes;
  });
  // A text that is repeated again and again stands for the last ones only.
  constexpr std::size_t kMaxNames = 64;
  if (text.stands_for.size() > kMaxNames) text.stands_for.resize(kMaxNames);
  texts_.push_front(std::move(text));
  limit(n_max_);
}

const KeptText* TextCache::find(const Stream& stream) {
  const Drafter* const drafter = stream.drafting.drafter;
  const bool reads_features = drafter != nullptr && drafter->traits().reads_features;
  auto best = texts_.end();
  std::ptrdiff_t most = 0;
  for (auto text = texts_.begin(); text != texts_.end(); ++text) {
    const bool is_other = stream.has_other_drafter(*text);
    if (is_other && reads_features) continue;
    // The same tokens have other keys and values with another encoder input.
    if (text->encoder_tokens != stream.encoder_tokens) continue;
    const auto differ = std::mismatch(text->tokens.begin(), text->tokens.end(),
                                      stream.tokens.begin(), stream.tokens.end())
                            .first;
    // The saving: the target's run of each common token; and, for the drafter's own texts, the
    // drafter's run, which costs a quarter of that where drafting pays.
    const std::ptrdiff_t n_common =
        std::min<std::ptrdiff_t>(differ - text->tokens.begin(), text->sequence->n_kept());
    const std::ptrdiff_t saved = n_common * (is_other ? 4 : 5);
    if (saved <= most) continue;
    best = text;
    most = saved;
  }
  if (best == texts_.end()) return nullptr;
  texts_.splice(texts_.begin(), texts_, best);
  return &texts_.front();
}

const KeptText* TextCache::find(SequenceId id) const {
  const auto at = std::find_if(texts_.begin(), texts_.end(),
                               [id](const KeptText& text) { return text.is_named(id); });
  return at == texts_.end() ? nullptr : &*at;
}

bool TextCache::drop_oldest() {
  if (texts_.empty()) return false;
  forget(texts_.back());
  texts_.pop_back();
  return true;
}

void TextCache::drop(SequenceId id) {
  drop_if([id](const KeptText& text) { return text.is_named(id); });
}

void TextCache::drop_those_of(const Drafter& drafter) {
  drop_if([&drafter](const KeptText& text) { return text.drafter.get() == &drafter; });
}

void TextCache::drop_if(const std::function<bool(const KeptText&)>& goes) {
  texts_.remove_if([&goes](const KeptText& text) {
    if (!goes(text)) return false;
    forget(text);
    return true;
  });
}

}  // namespace outrider
