// What was found likeliest behind each token: the adjacency matrix of Token Recycling.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_CANDIDATE_MATRIX_H_
#define OUTRIDER_SPECULATE_DRAFTERS_CANDIDATE_MATRIX_H_

#include <cstddef>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

#include "outrider/types.h"

namespace outrider {

// Holds the rows of at most `most_rows` >= 1 tokens; a further one takes the place of the row that
// was written longest ago. A row of eight candidates takes some 200 bytes; a token that was never
// written takes none. Not thread-safe.
class CandidateMatrix {
 public:
  struct Candidate {
    TokenId token = kNoToken;
    float share = 0;  // of what the candidates of its row have together
  };

  explicit CandidateMatrix(int most_rows) : most_rows_(static_cast<std::size_t>(most_rows)) {}
  CandidateMatrix(const CandidateMatrix&) = delete;
  CandidateMatrix& operator=(const CandidateMatrix&) = delete;
  CandidateMatrix(CandidateMatrix&&) = default;
  CandidateMatrix& operator=(CandidateMatrix&&) = default;

  // A token's candidates from now on, the likeliest first, whatever they were before.
  void write(TokenId token, std::span<const Candidate> candidates);
  // All rows of another matrix, those that it wrote last written last.
  void write_all(const CandidateMatrix& others);

  // What was written last; empty: nothing, or it made room. Valid until the next write.
  std::span<const Candidate> row(TokenId token) const;
  int n_rows() const { return static_cast<int>(rows_.size()); }

 private:
  struct Row {
    TokenId token = kNoToken;
    std::vector<Candidate> candidates;
  };

  std::size_t most_rows_;
  std::list<Row> rows_;  // in the order in which they were written
  std::unordered_map<TokenId, std::list<Row>::iterator> places_;
};

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_CANDIDATE_MATRIX_H_
