// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "eval/metrics/ngrams.h"
#include "eval/metrics/words.h"

namespace outrider::eval {
namespace {

constexpr int kMaxOrder = 4;
using Words = std::vector<std::u32string>;

void replace_all(std::u32string& text, std::u32string_view what, std::u32string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::u32string::npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
}

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_stop(char32_t c) { return c == U'.' || c == U','; }

// ASCII punctuation except apostrophe, comma, hyphen and full stop.
bool is_always_apart(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U'!' && c <= U'&') ||
         (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

struct Spaces {  // spaces to insert around and between two neighbours
  bool before;
  bool between;
  bool after;
};

// Substitutes pairs of neighbours from left to right, without overlap.
template <typename Matches>
std::u32string separate_pairs(const std::u32string& text, const Spaces& spaces, Matches matches) {
  std::u32string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at + 1 < text.size() && matches(text[at], text[at + 1])) {
      if (spaces.before) out += U' ';
      out += text[at];
      if (spaces.between) out += U' ';
      out += text[at + 1];
      if (spaces.after) out += U' ';
      ++at;
    } else {
      out += text[at];
    }
  }
  return out;
}

}  // namespace

std::vector<std::u32string> tokenize_13a(std::string_view text) {
  std::u32string line(strip_right(characters(text)));
  replace_all(line, U"<skipped>", U"");
  replace_all(line, U"-\n", U"");
  replace_all(line, U"\n", U" ");
  replace_all(line, U"&quot;", U"\"");
  replace_all(line, U"&amp;", U"&");
  replace_all(line, U"&lt;", U"<");
  replace_all(line, U"&gt;", U">");
  std::u32string apart = U" ";
  for (const char32_t c : line) {
    if (is_always_apart(c)) {
      apart += {U' ', c, U' '};
    } else {
      apart += c;
    }
  }
  apart += U' ';
  // A full stop or comma is separated unless digits are on both sides; a hyphen is separated from
  // the digit before it.
  apart =
      separate_pairs(apart, {.before = false, .between = true, .after = true},
                     [](char32_t one, char32_t next) { return !is_digit(one) && is_stop(next); });
  apart =
      separate_pairs(apart, {.before = true, .between = true, .after = false},
                     [](char32_t one, char32_t next) { return is_stop(one) && !is_digit(next); });
  apart = separate_pairs(apart, {.before = false, .between = true, .after = true},
                         [](char32_t one, char32_t next) { return is_digit(one) && next == U'-'; });
  return split_words(apart);
}

std::vector<double> Bleu::count(const Judged& judged) const {
  const Words text = tokenize_13a(judged.texts.front());
  std::vector<Words> references;
  references.reserve(judged.references.size());
  for (const std::string& reference : judged.references) {
    references.push_back(tokenize_13a(reference));
  }

  std::vector<double> counts(n_counts(), 0.0);
  for (int n = 1; n <= kMaxOrder; ++n) {
    // Each n-gram counts at most as often as in the reference that has it most often.
    std::map<Words, int> allowed;
    for (const Words& reference : references) {
      for (const auto& entry : ngrams(reference, n)) {
        int& most = allowed[entry.first];
        most = std::max(most, entry.second);
      }
    }
    counts[static_cast<std::size_t>(n - 1)] = n_common(ngrams(text, n), allowed);
    counts[static_cast<std::size_t>(kMaxOrder + n - 1)] =
        std::max(0, static_cast<int>(text.size()) - n + 1);
  }
  const auto length = static_cast<long>(text.size());
  long closest = std::numeric_limits<long>::max();
  for (const Words& reference : references) {
    const auto other = static_cast<long>(reference.size());
    const long distance = std::labs(other - length);
    const long least = std::labs(closest - length);
    if (distance < least || (distance == least && other < closest)) closest = other;
  }
  counts[2 * kMaxOrder] = static_cast<double>(length);
  counts[2 * kMaxOrder + 1] = static_cast<double>(closest);
  return counts;
}

std::vector<double> Bleu::scores(std::span<const double> sums) const {
  const auto matches = sums.first(kMaxOrder);
  const auto totals = sums.subspan(kMaxOrder, kMaxOrder);
  const double length = sums[2 * kMaxOrder];
  const double reference_length = sums[2 * kMaxOrder + 1];
  if (std::all_of(matches.begin(), matches.end(), [](double n) { return n == 0; })) return {0};
  double log_precisions = 0;
  double smoothing = 1;
  for (std::size_t n = 0; n < kMaxOrder; ++n) {
    // A text too short for any n-gram of this order has no precision.
    if (totals[n] == 0) return {0};
    if (matches[n] == 0) smoothing *= 2;
    const double matched = matches[n] == 0 ? 1 / smoothing : matches[n];
    log_precisions += std::log(100 * matched / totals[n]);
  }
  const double brevity = length < reference_length ? std::exp(1 - reference_length / length) : 1;
  return {brevity * std::exp(log_precisions / kMaxOrder)};
}

std::string Bleu::signature(std::size_t n_references) const {
  return fmt::format("nrefs:{}|case:mixed|eff:no|tok:13a|smooth:exp",
                     n_references == 0 ? "var" : fmt::format("{}", n_references));
}

}  // namespace outrider::eval
