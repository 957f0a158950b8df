// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/exact_match.h"

#include <algorithm>
#include <map>

#include "eval/metrics/ngrams.h"
#include "eval/metrics/words.h"

namespace outrider::eval {
namespace {

using Words = std::vector<std::u32string>;

bool is_ascii_punctuation(char32_t c) {
  return (c >= U'!' && c <= U'/') || (c >= U':' && c <= U'@') || (c >= U'[' && c <= U'`') ||
         (c >= U'{' && c <= U'~');
}

double f1_of(const Words& answer, const Words& reference) {
  // If either is empty, F1 is 1 if both are, and 0 otherwise.
  if (answer.empty() || reference.empty()) return answer == reference ? 1 : 0;
  const double common = n_common(ngrams(answer, 1), ngrams(reference, 1));
  return 2 * common / static_cast<double>(answer.size() + reference.size());
}

}  // namespace

std::vector<std::u32string> normalize_answer(std::string_view answer) {
  std::u32string text = lower_case(characters(answer));
  text.erase(std::remove_if(text.begin(), text.end(), is_ascii_punctuation), text.end());
  // An article that stands between non-word characters becomes a space. So what stood before it
  // and what stood after it remain separate words.
  std::u32string kept;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_word_character_in_python(text[end])) ++end;
    if (end == at) {
      kept += text[at++];
      continue;
    }
    const std::u32string_view word = std::u32string_view(text).substr(at, end - at);
    if (word == U"a" || word == U"an" || word == U"the") {
      kept += U' ';
    } else {
      kept += word;
    }
    at = end;
  }
  return split_words(kept);
}

ExactMatch::ExactMatch(std::string_view no_answer) : no_answer_(normalize_answer(no_answer)) {}

std::vector<double> ExactMatch::count(const Judged& judged) const {
  Words answer = normalize_answer(judged.texts.front());
  if (answer == no_answer_) answer.clear();  // it says that there is no answer
  // A reference of only articles and punctuation is ignored (as in SQuAD 2.0's program). If none
  // is left, the question has no answer, and the empty answer is right.
  std::vector<Words> references;
  for (const std::string& given : judged.references) {
    Words reference = normalize_answer(given);
    if (!reference.empty()) references.push_back(std::move(reference));
  }
  if (references.empty()) references.emplace_back();
  std::vector<double> counts = {0, 0, 1};  // exact match, F1, items
  for (const Words& reference : references) {
    counts[0] = std::max(counts[0], answer == reference ? 1.0 : 0.0);
    counts[1] = std::max(counts[1], f1_of(answer, reference));
  }
  return counts;
}

std::vector<double> ExactMatch::scores(std::span<const double> sums) const {
  return {100 * sums[0] / sums[2], 100 * sums[1] / sums[2]};
}

std::string ExactMatch::signature(std::size_t) const { return "norm:squad|refs:best"; }

}  // namespace outrider::eval
