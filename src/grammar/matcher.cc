// SPDX-License-Identifier: Apache-2.0
#include "grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "grammar/limits.h"

namespace outrider {

namespace {

// A placeholder for no grammar, never used.
std::shared_ptr<const CompiledGrammar> empty_text() {
  GrammarParts parts;
  const int root = parts.declare("empty");
  parts.define(root, parts.nothing());
  return std::make_shared<const CompiledGrammar>(parts, root, "make grammar");
}

void add(std::span<std::uint64_t> mask, TokenId id) {
  mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<unsigned>(id) % 64);
}

}  // namespace

GrammarMatcher::GrammarMatcher(std::shared_ptr<const CompiledGrammar> grammar,
                               const TokenTrie& trie, std::vector<SpelledToken> further,
                               MatchedOpening opening)
    : trie_(&trie),
      further_(std::move(further)),
      opening_(opening),
      has_grammar_(grammar != nullptr),
      automaton_(grammar != nullptr ? std::move(grammar) : empty_text()),
      path_(static_cast<std::size_t>(trie.depth()) + 1) {}

int GrammarMatcher::advance(int state, TokenId token) {
  if (state == kNotAllowed) return kNotAllowed;
  if (state <= kOpening) {
    if (token == opening_.end) return behind_opening();
    if (is_used_up(state)) return kNotAllowed;
    if (trie_->is_end(token)) return has_grammar_ ? kNotAllowed : kEnded;
    return opening_.max_tokens < 0 ? state : state - 1;
  }
  if (state == kFree) return trie_->is_end(token) ? kEnded : kFree;
  if (trie_->is_end(token)) return complete(state) ? kEnded : kNotAllowed;
  const std::string_view bytes = bytes_of(token);
  if (bytes.empty() || state == kEnded) return kNotAllowed;
  automaton_.allow_steps(kMaxMaskSteps);
  return step(state, bytes);
}

std::string_view GrammarMatcher::bytes_of(TokenId token) const {
  const std::string_view bytes = trie_->bytes(token);
  if (!bytes.empty()) return bytes;
  const auto at = std::find_if(further_.begin(), further_.end(),
                               [token](const SpelledToken& one) { return one.id == token; });
  return at == further_.end() ? std::string_view() : at->bytes;
}

int GrammarMatcher::step(int state, std::string_view bytes) {
  for (const char byte : bytes) {
    state = automaton_.step(state, static_cast<std::uint8_t>(byte));
    if (state < 0) {
      if (!automaton_.failure().empty()) failure_ = automaton_.failure();
      return kNotAllowed;
    }
  }
  return state;
}

std::span<const std::uint64_t> GrammarMatcher::allowed(int state) {
  // An opening has two masks, however long it is.
  if (state <= kOpening) state = is_used_up(state) ? kOpening - opening_.max_tokens : kOpening;
  bool is_new = false;
  const std::span<std::uint64_t> mask = find(masks_, state, is_new);
  if (is_new && !fill_mask(state, mask)) forget(masks_, state);
  return mask;
}

std::span<std::uint64_t> GrammarMatcher::find(Masks& masks, int state, bool& is_new) const {
  const std::size_t n_words = trie_->n_words();
  const auto at = masks.slot_of_state.find(state);
  is_new = at == masks.slot_of_state.end();
  const std::size_t slot = is_new ? masks.next_slot : at->second;
  if (is_new) {
    masks.next_slot = (masks.next_slot + 1) % kMaxMasks;
    if (slot < masks.state_of_slot.size()) {
      masks.slot_of_state.erase(std::exchange(masks.state_of_slot[slot], kNotAllowed));
    } else {
      masks.state_of_slot.push_back(kNotAllowed);
      masks.words.resize(masks.words.size() + n_words);
    }
    masks.slot_of_state.emplace(state, slot);
    masks.state_of_slot[slot] = state;
  }
  return std::span(masks.words).subspan(slot * n_words, n_words);
}

void GrammarMatcher::forget(Masks& masks, int state) {
  const auto at = masks.slot_of_state.find(state);
  masks.state_of_slot[at->second] = kNotAllowed;
  masks.slot_of_state.erase(at);
}

// Returns false if a limit was reached; the mask is empty then.
bool GrammarMatcher::fill_mask(int state, std::span<std::uint64_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  if (state == kFree || (state <= kOpening && !is_used_up(state))) {
    for (TokenId id = 0; id < trie_->n_ids(); ++id) add(mask, id);
    if (state == kFree || !has_grammar_) return true;
    for (const TokenId id : trie_->end_tokens()) {
      mask[static_cast<std::size_t>(id) / 64] &=
          ~(std::uint64_t{1} << (static_cast<unsigned>(id) % 64));
    }
    add(mask, opening_.end);
    return true;
  }
  if (state <= kOpening) {
    add(mask, opening_.end);
    return true;
  }
  if (state != kEnded && state != kNotAllowed && !fill_with_text(state, mask)) {
    // A mask cut short by a limit would lack allowed tokens.
    failure_ = automaton_.failure();
    std::fill(mask.begin(), mask.end(), 0);
    return false;
  }
  if (!complete(state)) return true;
  for (const TokenId id : trie_->end_tokens()) add(mask, id);
  return true;
}

// Returns false if a limit was reached.
bool GrammarMatcher::fill_with_text(int state, std::span<std::uint64_t> mask) {
  automaton_.allow_steps(kMaxMaskSteps);
  const TokenTrie::Part& tokens = trie_->short_tokens();
  const int alike = automaton_.alike(state, tokens.depth());
  bool is_new = false;
  const std::span<std::uint64_t> short_mask = find(short_masks_, alike, is_new);
  if (is_new) {
    std::fill(short_mask.begin(), short_mask.end(), 0);
    walk(tokens, alike, short_mask);
    if (!automaton_.failure().empty()) {
      forget(short_masks_, alike);
      return false;
    }
  }
  std::copy(short_mask.begin(), short_mask.end(), mask.begin());
  walk(trie_->long_tokens(), state, mask);
  for (const SpelledToken& one : further_) {
    if (step(state, one.bytes) != kNotAllowed) add(mask, one.id);
  }
  return automaton_.failure().empty();
}

// Adds the allowed tokens of a part.
void GrammarMatcher::walk(const TokenTrie::Part& part, int state, std::span<std::uint64_t> mask) {
  path_[0] = state;
  const std::span<const TokenTrie::Part::Node> nodes = part.nodes();
  for (std::size_t i = 0; i < nodes.size();) {
    const TokenTrie::Part::Node& node = nodes[i];
    const int next = automaton_.step(path_[node.depth], node.byte);
    if (next < 0) {
      i = static_cast<std::size_t>(node.end);
      continue;
    }
    path_[node.depth + 1u] = next;
    for (const TokenId id : part.tokens_at(i)) add(mask, id);
    ++i;
  }
}

void GrammarMatcher::forced(int state, std::size_t max_tokens, std::vector<TokenId>& tokens) {
  tokens.clear();
  while (tokens.size() < max_tokens && state < kFree) {
    const std::span<const std::uint64_t> mask = allowed(state);
    TokenId only = kNoToken;
    for (std::size_t word = 0; word < mask.size(); ++word) {
      if (mask[word] == 0) continue;
      if (only != kNoToken || std::popcount(mask[word]) > 1) return;
      only = static_cast<TokenId>(64 * word) + std::countr_zero(mask[word]);
    }
    if (only == kNoToken) return;
    tokens.push_back(only);
    state = advance(state, only);
  }
}

void GrammarMatcher::certain_text(int state, std::size_t max_bytes, std::string& text) {
  text.clear();
  if (state < 0 || state >= kFree) return;
  automaton_.allow_steps(kMaxMaskSteps);
  while (text.size() < max_bytes) {
    const int byte = automaton_.only_byte(state);
    if (byte < 0) return;
    state = automaton_.step(state, static_cast<std::uint8_t>(byte));
    if (state < 0) return;
    text.push_back(static_cast<char>(byte));
  }
}

std::string GrammarMatcher::failure() const {
  if (!failure_.empty() || !automaton_.met_nesting_limit()) return failure_;
  return "nesting: expected a shallower text, got one beyond the limit";
}

std::shared_ptr<GrammarMatcher> GrammarMatcher::next() {
  std::shared_ptr<GrammarMatcher> next = next_.lock();
  if (next == nullptr) {
    next = std::make_shared<GrammarMatcher>(has_grammar_ ? automaton_.grammar() : nullptr, *trie_,
                                            further_, opening_);
    next_ = next;
  }
  return next;
}

int GrammarMatcher::take_over(const GrammarMatcher& other, int state) {
  if (state < 0 || state >= kFree) return state;
  automaton_.allow_steps(kMaxMaskSteps);
  return automaton_.take_over(other.automaton_, state);
}

bool GrammarMatcher::is_full() const {
  return automaton_.n_states() > kManyStates || automaton_.n_frame_entries() > 16 * kManyStates;
}

bool GrammarMatcher::is_of(const std::shared_ptr<const CompiledGrammar>& grammar,
                           const TokenTrie& trie, const std::vector<SpelledToken>& further,
                           const MatchedOpening& opening) const {
  const bool has_same = has_grammar_ ? grammar == automaton_.grammar() : grammar == nullptr;
  return has_same && &trie == trie_ && further == further_ && opening == opening_;
}

std::shared_ptr<GrammarMatcher> GrammarMatchers::of(
    const std::shared_ptr<const CompiledGrammar>& grammar, const TokenTrie& trie,
    std::vector<SpelledToken> further, MatchedOpening opening) {
  auto at = std::find_if(matchers_.begin(), matchers_.end(), [&](const auto& matcher) {
    return matcher->is_of(grammar, trie, further, opening);
  });
  if (at == matchers_.end()) {
    if (matchers_.size() >= kMaxMatchers) matchers_.pop_back();
    at = matchers_.insert(matchers_.end(), std::make_shared<GrammarMatcher>(
                                               grammar, trie, std::move(further), opening));
  }
  while ((*at)->is_full()) *at = (*at)->next();
  std::rotate(matchers_.begin(), at, at + 1);
  return matchers_.front();
}

}  // namespace outrider
