// SPDX-License-Identifier: Apache-2.0
// A part of a product of parameters for normal runs: any two values of different lists meet in some
// case, but not any three. Nightly runs (nightly.h) have the whole product.
#ifndef OUTRIDER_TESTS_SUPPORT_PAIRS_OF_THE_DAY_H_
#define OUTRIDER_TESTS_SUPPORT_PAIRS_OF_THE_DAY_H_

#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/nightly.h"

namespace outrider::test {

// What a case is made of: two values or more, as many for every case.
using CaseValues = std::vector<std::string>;

// The places, in order, of cases that together have every pair of values that `cases` have. Each
// step takes the case with the most new pairs, and of equal ones the first. So cases that run
// briefly belong in front.
inline std::vector<std::size_t> places_of_all_pairs(const std::vector<CaseValues>& cases) {
  // Pairs by number.
  std::map<std::pair<std::size_t, std::string>, std::size_t> value_numbers;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> pair_numbers;
  std::vector<std::vector<std::size_t>> pairs_of(cases.size());
  for (std::size_t at = 0; at < cases.size(); ++at) {
    std::vector<std::size_t> numbers;
    for (std::size_t i = 0; i < cases[at].size(); ++i) {
      numbers.push_back(
          value_numbers.try_emplace({i, cases[at][i]}, value_numbers.size()).first->second);
      for (std::size_t j = 0; j < i; ++j) {
        pairs_of[at].push_back(
            pair_numbers.try_emplace({numbers[j], numbers[i]}, pair_numbers.size()).first->second);
      }
    }
  }
  std::vector<bool> is_new(pair_numbers.size(), true);
  std::vector<bool> is_taken(cases.size());
  for (std::size_t n_left = is_new.size(); n_left > 0;) {
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t at = 0; at < cases.size(); ++at) {
      std::size_t n_new = 0;
      for (const std::size_t pair : pairs_of[at]) n_new += is_new[pair] ? 1U : 0U;
      if (n_new > most) {
        most = n_new;
        best = at;
      }
    }
    for (const std::size_t pair : pairs_of[best]) is_new[pair] = false;
    is_taken[best] = true;
    n_left -= most;
  }
  std::vector<std::size_t> places;
  for (std::size_t at = 0; at < cases.size(); ++at) {
    if (is_taken[at]) places.push_back(at);
  }
  return places;
}

// Of `all`, the cases that run: values_of(one) says what a case is made of.
template <class Case, class ValuesOf>
std::vector<Case> pairs_of_the_day(const std::vector<Case>& all, ValuesOf values_of) {
  if (nightly()) return all;
  std::vector<CaseValues> cases;
  cases.reserve(all.size());
  for (const Case& one : all) cases.push_back(values_of(one));
  std::vector<Case> picked;
  for (const std::size_t at : places_of_all_pairs(cases)) picked.push_back(all[at]);
  return picked;
}

// A list of names for a product.
template <class... Names>
std::vector<std::string> names(const Names*... all) {
  return {all...};
}

// The product of lists; of it, the cases that run. The last list's values take turns first.
template <class... Values>
std::vector<std::tuple<Values...>> product_of_the_day(const std::vector<Values>&... lists) {
  constexpr std::size_t kLists = sizeof...(Values);
  using Places = std::array<std::size_t, kLists>;
  const Places sizes = {lists.size()...};
  std::size_t n_cases = 1;
  for (const std::size_t size : sizes) n_cases *= size;
  std::vector<Places> product(n_cases);
  for (std::size_t number = 0; number < n_cases; ++number) {
    std::size_t rest = number;
    for (std::size_t i = kLists; i-- > 0; rest /= sizes[i]) product[number][i] = rest % sizes[i];
  }
  std::vector<std::tuple<Values...>> picked;
  for (const Places& places : pairs_of_the_day(product, [](const Places& one) {
         CaseValues values;
         for (const std::size_t place : one) values.push_back(std::to_string(place));
         return values;
       })) {
    picked.push_back([&]<std::size_t... I>(std::index_sequence<I...>) {
      return std::tuple<Values...>(lists[places[I]]...);
    }(std::index_sequence_for<Values...>{}));
  }
  return picked;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PAIRS_OF_THE_DAY_H_
