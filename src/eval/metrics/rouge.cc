// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/rouge.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/metrics/ngrams.h"
#include "eval/metrics/words.h"

namespace outrider::eval {
namespace {

using Words = std::vector<std::u32string>;

Words words_of(std::string_view text) {
  std::u32string spaced = lower_case(characters(text));
  for (char32_t& c : spaced) {
    const bool stays = (c >= U'a' && c <= U'z') || (c >= U'0' && c <= U'9');
    if (!stays) c = U' ';
  }
  return split_words(spaced);
}

double f_score(int n_common, int n_text, int n_reference) {
  if (n_common == 0) return 0;
  const double precision = double(n_common) / n_text;
  const double recall = double(n_common) / n_reference;
  return 2 * precision * recall / (precision + recall);
}

double rouge_n(const Words& text, const Words& reference, int n) {
  const auto n_of = [n](const Words& words) {
    return std::max(0, static_cast<int>(words.size()) - n + 1);
  };
  return f_score(n_common(ngrams(text, n), ngrams(reference, n)), n_of(text), n_of(reference));
}

int longest_common_subsequence(const Words& one, const Words& other) {
  // For the first words of one and the first j of the other.
  std::vector<int> lengths(other.size() + 1, 0);
  for (const std::u32string& word : one) {
    int diagonal = 0;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const int above = lengths[j];
      lengths[j] = word == other[j - 1] ? diagonal + 1 : std::max(above, lengths[j - 1]);
      diagonal = above;
    }
  }
  return lengths.back();
}

double rouge_l(const Words& text, const Words& reference) {
  return f_score(longest_common_subsequence(text, reference), static_cast<int>(text.size()),
                 static_cast<int>(reference.size()));
}

}  // namespace

std::vector<double> Rouge::count(const Judged& judged) const {
  const Words text = words_of(judged.texts.front());
  std::vector<double> counts = {0, 0, 0, 1};
  for (const std::string& given : judged.references) {
    const Words reference = words_of(given);
    counts[0] = std::max(counts[0], rouge_n(text, reference, 1));
    counts[1] = std::max(counts[1], rouge_n(text, reference, 2));
    counts[2] = std::max(counts[2], rouge_l(text, reference));
  }
  return counts;
}

std::vector<double> Rouge::scores(std::span<const double> sums) const {
  return {100 * sums[0] / sums[3], 100 * sums[1] / sums[3], 100 * sums[2] / sums[3]};
}

std::string Rouge::signature(std::size_t n_references) const {
  return fmt::format("nrefs:{}|f1|stem:no|case:lower",
                     n_references == 0 ? "var" : fmt::format("{}", n_references));
}

}  // namespace outrider::eval
