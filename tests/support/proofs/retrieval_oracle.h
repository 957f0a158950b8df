// SPDX-License-Identifier: Apache-2.0
// The expected drafts of the retrieval drafter, found without an index: the text's last tokens are
// compared with every place of the store's text.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_RETRIEVAL_ORACLE_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_RETRIEVAL_ORACLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "outrider/types.h"
#include "speculate/draft_tree.h"

namespace outrider::test {

using TokenPath = std::vector<TokenId>;  // from the root, which is left out

class RetrievalOracle {
 public:
  RetrievalOracle(const std::vector<std::vector<TokenId>>& documents, std::size_t segment_tokens)
      : segment_tokens_(segment_tokens) {
    for (const std::vector<TokenId>& document : documents) {
      text_.insert(text_.end(), document.begin(), document.end());
      text_.push_back(kNoToken);
    }
  }

  // The nodes of the draft after `context`, in the order in which they are drafted.
  std::vector<TokenPath> draft(std::span<const TokenId> context, int depth, int n_nodes,
                               bool is_chain) const {
    std::vector<std::size_t> places;  // after each occurrence
    for (std::size_t length = std::min<std::size_t>(16, context.size());
         length >= 2 && places.empty(); --length) {
      places = occurrences(context.last(length));
    }
    std::map<TokenPath, int> counts;
    const std::size_t n_sampled = std::min<std::size_t>(places.size(), 1024);
    for (std::size_t i = 0; i < n_sampled; ++i) {
      TokenPath path;
      std::size_t at = places[(2 * i + 1) * places.size() / (2 * n_sampled)];
      for (; static_cast<int>(path.size()) < depth && text_[at] != kNoToken; ++at) {
        path.push_back(text_[at]);
        ++counts[path];
      }
    }
    return is_chain ? best_chain(counts, n_nodes) : best_nodes(counts, n_nodes);
  }

  std::size_t longest_sample() const { return longest_sample_; }

 private:
  // Sorted by segment and, within one, by the tokens that follow; kNoToken, as a large number, is
  // last.
  std::vector<std::size_t> occurrences(std::span<const TokenId> pattern) const {
    std::vector<std::size_t> places;
    for (auto at = text_.begin();; ++at) {
      at = std::search(at, text_.end(), pattern.begin(), pattern.end());
      if (at == text_.end()) break;
      places.push_back(static_cast<std::size_t>(at - text_.begin()) + pattern.size());
    }
    std::sort(places.begin(), places.end(), [&](std::size_t left, std::size_t right) {
      const std::size_t left_segment = (left - pattern.size()) / segment_tokens_;
      const std::size_t right_segment = (right - pattern.size()) / segment_tokens_;
      if (left_segment != right_segment) return left_segment < right_segment;
      return std::lexicographical_compare(
          text_.begin() + static_cast<std::ptrdiff_t>(left), text_.end(),
          text_.begin() + static_cast<std::ptrdiff_t>(right), text_.end(),
          [](TokenId a, TokenId b) {
            return static_cast<std::uint32_t>(a) < static_cast<std::uint32_t>(b);
          });
    });
    longest_sample_ = std::max(longest_sample_, places.size());
    return places;
  }

  static std::vector<TokenPath> best_nodes(const std::map<TokenPath, int>& counts, int n_nodes) {
    std::vector<std::pair<TokenPath, int>> nodes(counts.begin(), counts.end());  // paths ascending
    std::stable_sort(nodes.begin(), nodes.end(), [](const auto& left, const auto& right) {
      return left.second != right.second ? left.second > right.second
                                         : left.first.size() < right.first.size();
    });
    std::vector<TokenPath> best;
    for (const auto& node : nodes) {
      if (static_cast<int>(best.size()) == n_nodes) break;
      best.push_back(node.first);
    }
    return best;
  }

  static std::vector<TokenPath> best_chain(const std::map<TokenPath, int>& counts, int n_nodes) {
    std::vector<TokenPath> chain;
    for (TokenPath path; static_cast<int>(chain.size()) < n_nodes; chain.push_back(path)) {
      int most = 0;
      TokenPath longer = path;
      longer.push_back(0);
      TokenId token = kNoToken;
      for (auto child = counts.lower_bound(longer);
           child != counts.end() && child->first.size() > path.size() &&
           std::equal(path.begin(), path.end(), child->first.begin());
           ++child) {
        if (child->first.size() != path.size() + 1 || child->second <= most) continue;
        most = child->second;
        token = child->first.back();
      }
      if (most == 0) break;
      path.push_back(token);
    }
    return chain;
  }

  std::vector<TokenId> text_;
  std::size_t segment_tokens_;
  mutable std::size_t longest_sample_ = 0;  // the most occurrences of one pattern so far
};

inline std::vector<TokenPath> paths_of(const DraftTree& tree) {
  std::vector<TokenPath> paths(static_cast<std::size_t>(tree.n_drafted()));
  for (int node = 1; node < tree.n_nodes(); ++node) {
    tree.path_tokens(node, paths[static_cast<std::size_t>(node - 1)]);
  }
  return paths;
}

// How many tokens of `following`, the continuation by plain decoding, the draft contains as a path.
inline int n_agreeing(const std::vector<TokenPath>& draft, std::span<const TokenId> following) {
  const std::set<TokenPath> nodes(draft.begin(), draft.end());
  TokenPath path;
  for (const TokenId token : following) {
    path.push_back(token);
    if (!nodes.contains(path)) return static_cast<int>(path.size()) - 1;
  }
  return static_cast<int>(following.size());
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_RETRIEVAL_ORACLE_H_
