// SPDX-License-Identifier: Apache-2.0
// The likeliest successors found for each token: the adjacency matrix of Token Recycling.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CANDIDATE_MATRIX_H_
#define OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CANDIDATE_MATRIX_H_

#include <cstddef>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// Holds at most `max_rows` >= 1 rows, one for each token; a further row replaces the one written
// longest ago. A row of eight candidates takes about 200 bytes; a token without a row takes none.
// Not thread-safe.
class CandidateMatrix {
 public:
  struct Candidate {
    TokenId token = kNoToken;
    float share = 0;  // of the candidates of its row together
  };

  explicit CandidateMatrix(int max_rows) : max_rows_(static_cast<std::size_t>(max_rows)) {}
  CandidateMatrix(const CandidateMatrix&) = delete;
  CandidateMatrix& operator=(const CandidateMatrix&) = delete;
  CandidateMatrix(CandidateMatrix&&) = default;
  CandidateMatrix& operator=(CandidateMatrix&&) = default;

  // Replaces a token's candidates, the likeliest first.
  void write(TokenId token, std::span<const Candidate> candidates);
  // Writes all rows of another matrix, in the order in which they were written there.
  void write_all(const CandidateMatrix& others);

  // The token's last written row; empty: never written, or replaced. Valid until the next write.
  std::span<const Candidate> row(TokenId token) const;
  int n_rows() const { return static_cast<int>(rows_.size()); }

 private:
  struct Row {
    TokenId token = kNoToken;
    std::vector<Candidate> candidates;
  };

  std::size_t max_rows_;
  std::list<Row> rows_;  // in the order in which they were written
  std::unordered_map<TokenId, std::list<Row>::iterator> places_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_LOOKUP_CANDIDATE_MATRIX_H_
