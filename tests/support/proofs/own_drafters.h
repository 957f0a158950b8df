// SPDX-License-Identifier: Apache-2.0
// Drafters supplied by a program, for the contract suite: one names its tokens, one draws them.
// Both drafts are functions of the text.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_OWN_DRAFTERS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_OWN_DRAFTERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "outrider/own_drafter.h"
#include "tests/support/proofs/drafter_cases.h"

namespace outrider::test {

// Common base: stores the tokens of each text by its id and compares them with the given ones.
class RemembersTexts : public OwnDrafter {
 public:
  void begin(const OwnText& text) override {
    if (!texts_.emplace(text.id, std::vector<TokenId>()).second) fail("a text that begins twice");
    read(text);
  }
  void observe(const OwnText& text, std::span<const int> accepted) override {
    const std::size_t n_before = texts_.at(text.id).size();
    read(text);
    if (text.tokens.size() <= n_before) fail("a round without a token");
    // Fewer if the text ends within the draft.
    const std::size_t n_drafted = std::min(accepted.size(), text.tokens.size() - n_before);
    for (std::size_t i = 0; i < n_drafted; ++i) {
      const auto& [token, parent] = drafted_.at(text.id).at(static_cast<std::size_t>(accepted[i]));
      if (token != text.tokens[n_before + i] || parent != (i == 0 ? -1 : accepted[i - 1])) {
        fail("an accepted node that is not in the text");
      }
    }
    drafted_.erase(text.id);
  }
  void end(std::int64_t id) noexcept override {
    texts_.erase(id);
    drafted_.erase(id);
  }
  std::size_t n_texts() const { return texts_.size(); }

 protected:
  struct Node {
    TokenId token;
    int parent;
  };
  // Reads the text's tokens, which must be the known ones and possibly more.
  const std::vector<TokenId>& read(const OwnText& text) {
    std::vector<TokenId>& known = texts_.at(text.id);
    if (text.tokens.size() < known.size() ||
        !std::equal(known.begin(), known.end(), text.tokens.begin())) {
      fail("another text of the same id");
    }
    known.assign(text.tokens.begin(), text.tokens.end());
    return known;
  }
  // Records the draft's nodes for observe().
  std::vector<Node>& drafted(const OwnText& text) { return drafted_[text.id]; }

 private:
  [[noreturn]] static void fail(const char* what) { throw std::logic_error(what); }

  std::unordered_map<std::int64_t, std::vector<TokenId>> texts_;
  std::unordered_map<std::int64_t, std::vector<Node>> drafted_;
};

// Drafts what followed a token the last two times: a chain of the latest ones, and in a tree also
// the earlier one as a sibling of the first.
class NamesWhatFollowed final : public RemembersTexts {
 public:
  void propose(const OwnText& text, OwnDraft& draft) override {
    const std::vector<TokenId>& tokens = read(text);
    std::unordered_map<TokenId, std::pair<TokenId, TokenId>> followers;  // the latest, another
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const auto [at, is_new] = followers.try_emplace(tokens[i], tokens[i + 1], kNoToken);
      if (is_new || at->second.first == tokens[i + 1]) continue;
      at->second = {tokens[i + 1], at->second.first};
    }
    std::vector<Node>& nodes = drafted(text);
    nodes.clear();
    const auto add = [&](int parent, TokenId token) {
      nodes.push_back({token, parent});
      return draft.add(parent, token);
    };
    const auto first = followers.find(tokens.back());
    if (first == followers.end()) return;
    int node = add(-1, first->second.first);
    if (!draft.is_chain() && first->second.second != kNoToken && draft.n_nodes() < limit(draft)) {
      add(-1, first->second.second);
    }
    TokenId token = first->second.first;
    for (int depth = 2; depth <= draft.max_depth() && draft.n_nodes() < limit(draft); ++depth) {
      const auto next = followers.find(token);
      if (next == followers.end()) return;
      token = next->second.first;
      node = add(node, token);
    }
  }

 private:
  static int limit(const OwnDraft& draft) { return std::min(draft.max_nodes(), 6); }
};

// Draws a token from those that followed the last token before, by their frequency. Three tokens
// that followed rarely or never are added, so every distribution has several tokens. At most three
// nodes: a child of the text's last token, in a tree a second one, and a child of the first.
class DrawsWhatFollowed final : public RemembersTexts {
 public:
  void propose(const OwnText& text, OwnDraft& draft) override {
    const std::vector<TokenId>& tokens = read(text);
    std::vector<Node>& nodes = drafted(text);
    nodes.clear();
    const auto draw = [&](int parent, TokenId behind) {
      std::map<TokenId, double> counts = {{0, 0.4}, {1, 0.3}, {2, 0.2}};
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i] == behind) counts[tokens[i + 1]] += 1;
      }
      double sum = 0;
      for (const auto& [token, count] : counts) sum += count;
      std::vector<TokenId> ids;
      std::vector<double> probs;
      for (const auto& [token, count] : counts) {
        ids.push_back(token);
        probs.push_back(count / sum);
      }
      const OwnDraft::Drawn drawn = draft.draw(parent, {.ids = ids, .probs = probs});
      nodes.push_back({drawn.token, parent});
      return drawn;
    };
    const OwnDraft::Drawn first = draw(-1, tokens.back());
    if (!draft.is_chain() && draft.n_nodes() < draft.max_nodes()) draw(-1, tokens.back());
    if (draft.max_depth() > 1 && draft.n_nodes() < draft.max_nodes()) {
      draw(first.node, first.token);
    }
  }
};

inline std::shared_ptr<OwnDrafter> make_own(Own own) {
  switch (own) {
    case Own::named:
      return std::make_shared<NamesWhatFollowed>();
    case Own::drawn:
      return std::make_shared<DrawsWhatFollowed>();
    case Own::none:
      break;
  }
  return nullptr;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_OWN_DRAFTERS_H_
