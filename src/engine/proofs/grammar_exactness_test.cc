// SPDX-License-Identifier: Apache-2.0
// A grammar at every node, by enumeration: every outcome of drafter and verifier runs through the
// production loop. The joint distribution of the emitted tokens must be that of the target's rows
// with forbidden tokens at minus infinity; a brute-force search finds these. Then the mask is left
// out or taken from a wrong state, and the same enumeration must notice.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grammar/gbnf.h"
#include "grammar/naive_grammar.h"
#include "speculate/drafters/grammar_drafter.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/proofs/acceptance_cases.h"
#include "tests/support/proofs/enumerated_process.h"
#include "tests/support/proofs/exactness.h"

namespace outrider {
namespace {

using test::acceptance_cases;
using test::AcceptanceCase;
using test::distance;
using test::enumerate;
using test::Enumerated;
using test::kCaught;
using test::kExact;
using test::TableModel;
using test::target_distribution;
using test::transforms;
using test::Trial;
using test::trial_of;

// Letters, one token of two letters, and the end.
const std::vector<std::string> kTokens = {"a", "b", "ab", ""};
constexpr TokenId kEnd = 3;

const TokenTrie& trie() {
  static const TokenTrie the_trie(kTokens, std::vector<TokenId>{kEnd});
  return the_trie;
}

using Node = NaiveNode;

Node letters(const char* text) { return {.kind = Node::Kind::literal, .text = text}; }
Node call(int rule) { return {.kind = Node::Kind::call, .rule = rule}; }

// Languages over a and b: with choices, with certain tokens, with nesting, with an early end.
std::vector<NaiveGrammar> grammars() {
  std::vector<NaiveGrammar> all(4);
  // (a | b b | a b a)*
  all[0].rules = {{.kind = Node::Kind::repeat,
                   .nodes = {{.kind = Node::Kind::choice,
                              .nodes = {letters("a"), letters("bb"), letters("aba")}}},
                   .min = 0,
                   .max = -1}};
  // a b b (a | b): all but the last are certain
  all[1].rules = {{.kind = Node::Kind::sequence,
                   .nodes = {letters("abb"), {.kind = Node::Kind::one_of, .text = "ab"}}}};
  // a root b | b a
  all[2].rules = {
      {.kind = Node::Kind::choice,
       .nodes = {{.kind = Node::Kind::sequence, .nodes = {letters("a"), call(0), letters("b")}},
                 letters("ba")}}};
  // [ab]{1,2}
  all[3].rules = {{.kind = Node::Kind::repeat,
                   .nodes = {{.kind = Node::Kind::one_of, .text = "ab"}},
                   .min = 1,
                   .max = 2}};
  return all;
}

std::function<std::shared_ptr<GrammarMatcher>()> matcher_of(const NaiveGrammar& naive) {
  const auto compiled = std::make_shared<const CompiledGrammar>(read_gbnf(naive.gbnf()));
  return [compiled] { return std::make_shared<GrammarMatcher>(compiled, trie()); };
}

// The mask by brute force, one token at a time.
auto mask_of(NaiveGrammar naive) {
  return [naive](const std::vector<TokenId>& emitted, std::vector<float>& logits) mutable {
    std::string text;
    bool possible = true;
    bool ended = false;
    for (const TokenId token : emitted) {
      possible = possible && (token == kEnd ? ended || naive.matches(text) : !ended);
      ended = ended || token == kEnd;
      text += kTokens[static_cast<std::size_t>(token)];
      possible = possible && naive.begins(text);
    }
    for (TokenId token = 0; token < static_cast<TokenId>(kTokens.size()); ++token) {
      const bool allowed =
          possible &&
          (token == kEnd ? naive.matches(text)
                         : !ended && naive.begins(text + kTokens[static_cast<std::size_t>(token)]));
      if (!allowed)
        logits[static_cast<std::size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
  };
}

TEST(GrammarExactness, AMaskAtEveryNode) {
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    TableModel target(4, 2 * seed);
    for (NaiveGrammar& naive : grammars()) {
      const auto matcher = matcher_of(naive);
      for (const auto& [sampling_name, sampling] : transforms()) {
        for (const AcceptanceCase& one : acceptance_cases()) {
          ModelDrafter drafter(std::make_unique<TableModel>(4, 2 * seed + 1), 4);
          Trial trial = trial_of(target, drafter, one, sampling);
          trial.matcher = matcher;
          trial.mask = mask_of(naive);
          const Enumerated enumerated = enumerate(trial);
          EXPECT_NEAR(enumerated.weight, 1.0, kExact);
          EXPECT_LT(distance(enumerated.dist, target_distribution(trial)), kExact)
              << one.name << ", " << sampling_name << ", " << naive.gbnf();
        }
      }
    }
  }
}

// Certain tokens are accepted, whatever the target prefers.
TEST(GrammarExactness, DraftsOfTheGrammarItself) {
  double max_accepted = 0;
  for (NaiveGrammar& naive : grammars()) {
    for (const auto& [sampling_name, sampling] : transforms()) {
      for (const AcceptanceCase& drawn : acceptance_cases()) {
        if (!drawn.shape->is_chain()) continue;
        TableModel target(4, 6);
        GrammarDrafter drafter(4);
        const AcceptanceCase one{drawn.name, drawn.acceptance, chain_shape(4)};
        Trial trial = trial_of(target, drafter, one, sampling);
        trial.matcher = matcher_of(naive);
        trial.mask = mask_of(naive);
        const Enumerated enumerated = enumerate(trial);
        EXPECT_LT(distance(enumerated.dist, target_distribution(trial)), kExact)
            << one.name << ", " << sampling_name << ", " << naive.gbnf();
        max_accepted = std::max(max_accepted, enumerated.accepted_in_first_round);
      }
    }
  }
  EXPECT_GT(max_accepted, 0.1);
  // If all is certain, all is accepted, the end included, unless the target lacks such a token. A
  // limit of four tokens allows drafts of three.
  NaiveGrammar only;
  only.rules = {{.kind = Node::Kind::sequence, .nodes = {letters("bba")}}};
  double most = 0;
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    TableModel target(4, seed);
    GrammarDrafter drafter(4);
    const AcceptanceCase one{"", make_multi_round(std::make_shared<ExactRule>()), chain_shape(4)};
    Trial trial = trial_of(target, drafter, one, {.temperature = 1});
    trial.matcher = matcher_of(only);
    most = std::max(most, enumerate(trial).accepted_in_first_round);
  }
  EXPECT_NEAR(most, 3, kExact);
}

// Without a mask in the drafter the distribution is unchanged (it is the target's), with fewer
// accepted tokens. Without a mask in the target, or with another node's, it changes.
TEST(GrammarExactness, MutantsAreCaught) {
  double worst_unmasked = 0;
  double worst_rooted = 0;
  for (NaiveGrammar& naive : grammars()) {
    TableModel target(4, 4);
    ModelDrafter drafter(std::make_unique<TableModel>(4, 5), 4);
    const AcceptanceCase one{"", make_multi_round(std::make_shared<ExactRule>()), chain_shape(2)};
    Trial trial = trial_of(target, drafter, one, {.temperature = 1});
    trial.mask = mask_of(naive);
    worst_unmasked =
        std::max(worst_unmasked, distance(enumerate(trial).dist, target_distribution(trial)));
    // The root's mask at all nodes, where it belongs to another text.
    trial.matcher = matcher_of(naive);
    std::function<void(const std::vector<TokenId>&, std::vector<float>&)> right = mask_of(naive);
    trial.mask = [right](const std::vector<TokenId>& emitted, std::vector<float>& logits) mutable {
      right(std::vector<TokenId>(emitted.begin(), emitted.begin() + (emitted.empty() ? 0 : 1)),
            logits);
    };
    worst_rooted =
        std::max(worst_rooted, distance(enumerate(trial).dist, target_distribution(trial)));
  }
  EXPECT_GT(worst_unmasked, kCaught);
  EXPECT_GT(worst_rooted, kCaught);
}

}  // namespace
}  // namespace outrider
