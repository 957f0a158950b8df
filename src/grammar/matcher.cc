#include "grammar/matcher.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "grammar/limits.h"

namespace outrider {

namespace {

// Stands in the place of no grammar; nothing looks at it.
std::shared_ptr<const CompiledGrammar> empty_text() {
  GrammarParts parts;
  const int root = parts.declare("empty");
  parts.define(root, parts.nothing());
  return std::make_shared<const CompiledGrammar>(parts, root, "make grammar");
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

GrammarMatcher::GrammarMatcher(const GrammarMatcher& other, int& state)
    : trie_(other.trie_),
      further_(other.further_),
      opening_(other.opening_),
      has_grammar_(other.has_grammar_),
      automaton_([&] {
        int start = other.automaton_.start();
        return ByteAutomaton(other.automaton_, state >= 0 && state < kFree ? state : start);
      }()),
      path_(other.path_.size()) {}

int GrammarMatcher::advance(int state, TokenId token) {
  if (state == kNotAllowed) return kNotAllowed;
  if (state <= kOpening) {
    if (token == opening_.end) return behind_opening();
    if (is_used_up(state)) return kNotAllowed;
    if (trie_->is_end(token)) return has_grammar_ ? kNotAllowed : kEnded;
    return opening_.most < 0 ? state : state - 1;
  }
  if (state == kFree) return trie_->is_end(token) ? kEnded : kFree;
  if (trie_->is_end(token)) return complete(state) ? kEnded : kNotAllowed;
  const std::string_view bytes = bytes_of(token);
  if (bytes.empty() || state == kEnded) return kNotAllowed;
  automaton_.allow_steps(kMostMaskSteps);
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
    if (state < 0) return kNotAllowed;
  }
  return state;
}

std::span<const std::uint64_t> GrammarMatcher::allowed(int state) {
  // Of an opening there are two masks, however long it is.
  if (state <= kOpening) state = is_used_up(state) ? kOpening - opening_.most : kOpening;
  const std::size_t n_words = trie_->n_words();
  const auto mask_of = [&](std::size_t slot) {
    return std::span(masks_).subspan(slot * n_words, n_words);
  };
  const auto at = slot_of_state_.find(state);
  if (at != slot_of_state_.end()) return mask_of(at->second);
  const std::size_t slot = next_slot_;
  next_slot_ = (next_slot_ + 1) % kMostMasks;
  if (slot < state_of_slot_.size()) {
    slot_of_state_.erase(state_of_slot_[slot]);
    state_of_slot_[slot] = state;
  } else {
    state_of_slot_.push_back(state);
    masks_.resize(masks_.size() + n_words);
  }
  slot_of_state_.emplace(state, slot);
  fill_mask(state, mask_of(slot));
  return mask_of(slot);
}

void GrammarMatcher::fill_mask(int state, std::span<std::uint64_t> mask) {
  std::fill(mask.begin(), mask.end(), 0);
  const auto set = [&mask](TokenId id) {
    mask[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (static_cast<unsigned>(id) % 64);
  };
  if (state == kFree || (state <= kOpening && !is_used_up(state))) {
    for (TokenId id = 0; id < trie_->n_ids(); ++id) set(id);
    if (state == kFree || !has_grammar_) return;
    for (const TokenId id : trie_->end_tokens()) {
      mask[static_cast<std::size_t>(id) / 64] &=
          ~(std::uint64_t{1} << (static_cast<unsigned>(id) % 64));
    }
    set(opening_.end);
    return;
  }
  if (state <= kOpening) return set(opening_.end);
  if (complete(state)) {
    for (const TokenId id : trie_->end_tokens()) set(id);
  }
  if (state == kEnded || state == kNotAllowed) return;
  automaton_.allow_steps(kMostMaskSteps);
  path_[0] = state;
  const std::span<const TokenTrie::Node> nodes = trie_->nodes();
  for (std::size_t i = 0; i < nodes.size();) {
    const TokenTrie::Node& node = nodes[i];
    const int next = automaton_.step(path_[node.depth], node.byte);
    if (next < 0) {
      i = static_cast<std::size_t>(node.end);
      continue;
    }
    path_[node.depth + 1u] = next;
    for (const TokenId id : trie_->tokens_at(i)) set(id);
    ++i;
  }
  for (const SpelledToken& one : further_) {
    if (step(state, one.bytes) != kNotAllowed) set(one.id);
  }
  // A mask that is cut short by a limit would let pass some of what it should.
  if (!automaton_.failure().empty()) std::fill(mask.begin(), mask.end(), 0);
}

void GrammarMatcher::forced(int state, std::size_t most, std::vector<TokenId>& tokens) {
  tokens.clear();
  while (tokens.size() < most && state < kFree) {
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

void GrammarMatcher::certain_text(int state, std::size_t most, std::string& text) {
  text.clear();
  if (state < 0 || state >= kFree) return;
  automaton_.allow_steps(kMostMaskSteps);
  while (text.size() < most) {
    const int byte = automaton_.only_byte(state);
    if (byte < 0) return;
    state = automaton_.step(state, static_cast<std::uint8_t>(byte));
    if (state < 0) return;
    text.push_back(static_cast<char>(byte));
  }
}

std::string GrammarMatcher::failure() const {
  if (!automaton_.failure().empty() || !automaton_.met_nesting_limit()) return automaton_.failure();
  return "nesting: expected a shallower text, got one beyond the limit";
}

bool GrammarMatcher::is_full() const {
  return automaton_.n_states() > kManyStates || automaton_.n_frame_entries() > 16 * kManyStates;
}

}  // namespace outrider
