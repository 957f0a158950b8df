// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/candidate_matrix.h"

#include <iterator>

namespace outrider {

void CandidateMatrix::write(TokenId token, std::span<const Candidate> candidates) {
  const auto known = places_.find(token);
  if (known != places_.end()) {
    rows_.splice(rows_.end(), rows_, known->second);
  } else if (rows_.size() < max_rows_) {
    rows_.emplace_back();
    places_.emplace(token, std::prev(rows_.end()));
  } else {
    places_.erase(rows_.front().token);
    rows_.splice(rows_.end(), rows_, rows_.begin());
    places_.emplace(token, std::prev(rows_.end()));
  }
  Row& row = rows_.back();
  row.token = token;
  row.candidates.assign(candidates.begin(), candidates.end());
}

void CandidateMatrix::write_all(const CandidateMatrix& others) {
  for (const Row& row : others.rows_) write(row.token, row.candidates);
}

std::span<const CandidateMatrix::Candidate> CandidateMatrix::row(TokenId token) const {
  const auto at = places_.find(token);
  if (at == places_.end()) return {};
  return at->second->candidates;
}

}  // namespace outrider
