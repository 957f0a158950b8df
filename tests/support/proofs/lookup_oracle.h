// SPDX-License-Identifier: Apache-2.0
// The expected drafts of lookup drafters, found by searching the text from end to end. Slow and
// simple; it shares no code with the drafters.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_LOOKUP_ORACLE_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_LOOKUP_ORACLE_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "outrider/types.h"

namespace outrider::test {

using TokenSpan = std::span<const TokenId>;

struct OracleNode {
  TokenId token;
  int parent;  // in the list, -1 for the root
};
using OracleDraft = std::vector<OracleNode>;

inline OracleDraft chain_of(const std::vector<TokenId>& tokens) {
  OracleDraft draft;
  for (const TokenId token : tokens) {
    draft.push_back({token, static_cast<int>(draft.size()) - 1});
  }
  return draft;
}

// Whether the `n` tokens before position `end` of `where` are the last n of `text`.
inline bool ends_alike(TokenSpan where, std::size_t end, TokenSpan text, std::size_t n) {
  if (n > end || n > text.size()) return false;
  return std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                    where.begin() + static_cast<std::ptrdiff_t>(end - n));
}

// ngram:min=,max=,length=,match=
inline OracleDraft ngram_oracle(TokenSpan text, std::size_t shortest, std::size_t longest,
                                std::size_t length, bool first) {
  for (std::size_t n = longest; n >= shortest && n > 0; --n) {
    std::vector<std::size_t> places;
    for (std::size_t end = n; end < text.size(); ++end) {
      if (ends_alike(text, end, text, n)) places.push_back(end);
    }
    if (places.empty()) continue;
    std::vector<TokenId> copied(text.begin(), text.end());
    std::vector<TokenId> draft;
    for (std::size_t at = first ? places.front() : places.back(); draft.size() < length; ++at) {
      if (first && at == text.size()) break;
      draft.push_back(copied[at]);
      copied.push_back(copied[at]);
    }
    return chain_of(draft);
  }
  return {};
}

// reference:min=,length= over one document.
inline OracleDraft reference_oracle(TokenSpan text, TokenSpan document, std::size_t shortest,
                                    std::size_t length) {
  for (std::size_t n = 32; n >= shortest; --n) {
    for (std::size_t end = n; end < document.size(); ++end) {
      if (!ends_alike(document, end, text, n)) continue;
      const TokenSpan rest = document.subspan(end);
      const TokenSpan copied = rest.first(std::min(rest.size(), length));
      return chain_of({copied.begin(), copied.end()});
    }
  }
  return {};
}

// suffix:length=,total=,cut=,factor= without earlier texts.
struct SuffixOracle {
  int length = 16;
  int total = 16;
  double cut = 0.1;
  double factor = 4;
  bool chain = false;

  // How often each token followed the string.
  static std::map<TokenId, int> followers(TokenSpan text, TokenSpan string) {
    std::map<TokenId, int> counts;
    for (std::size_t end = string.size(); end < text.size(); ++end) {
      if (ends_alike(text, end, string, string.size())) ++counts[text[end]];
    }
    return counts;
  }

  OracleDraft operator()(TokenSpan text, int depth) const {
    constexpr std::size_t kOrder = 32;
    OracleDraft best;
    double best_score = 0;
    for (std::size_t n = std::min(kOrder, text.size()); n > 0; --n) {
      struct Candidate {
        OracleNode node;
        int depth;
        double prob;
        std::vector<TokenId> string;
      };
      std::vector<Candidate> open;
      OracleDraft draft;
      double score = 0;
      const auto expand = [&](const std::vector<TokenId>& string, int parent, int at_depth,
                              double prob) {
        if (at_depth > std::min(depth, length) || at_depth > factor * static_cast<double>(n)) {
          return;
        }
        const auto counts = followers(text, string);
        double n_followed = 0;
        for (const auto& [token, count] : counts) n_followed += count;
        std::vector<Candidate> children;
        for (const auto& [token, count] : counts) {
          const double path = prob * count / n_followed;
          if (path < cut) continue;
          Candidate child{{token, parent}, at_depth, path, string};
          child.string.push_back(token);
          if (child.string.size() > kOrder) child.string.erase(child.string.begin());
          children.push_back(child);
        }
        if (chain && !children.empty()) {
          children = {*std::max_element(
              children.begin(), children.end(),
              [](const Candidate& a, const Candidate& b) { return a.prob < b.prob; })};
        }
        open.insert(open.end(), children.begin(), children.end());
      };
      expand({text.end() - static_cast<std::ptrdiff_t>(n), text.end()}, -1, 1, 1.0);
      while (!open.empty() && static_cast<int>(draft.size()) < total) {
        const auto next =
            std::min_element(open.begin(), open.end(), [](const Candidate& a, const Candidate& b) {
              if (a.prob != b.prob) return a.prob > b.prob;
              if (a.depth != b.depth) return a.depth < b.depth;
              if (a.node.parent != b.node.parent) return a.node.parent < b.node.parent;
              return a.node.token < b.node.token;
            });
        const Candidate taken = *next;
        open.erase(next);
        draft.push_back(taken.node);
        score += taken.prob;
        expand(taken.string, static_cast<int>(draft.size()) - 1, taken.depth + 1, taken.prob);
      }
      if (score > best_score) {
        best_score = score;
        best = draft;
      }
    }
    return best;
  }
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_LOOKUP_ORACLE_H_
