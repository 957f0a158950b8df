// SPDX-License-Identifier: Apache-2.0
// A user's mask in generators and batches: with every drafter, drafted texts equal plain ones bit
// for bit, and all tokens are allowed. The mask is called once per place. An exception, or a place
// where nothing is allowed, ends its own request.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "outrider/batch.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/token_mask.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using ::testing::HasSubstr;

using Tokens = std::vector<TokenId>;

std::shared_ptr<const Model> target() {
  static const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  return model;
}
int vocabulary() { return target()->summary().vocabulary_size; }

// Forbids a third of the tokens, different after each text; after some texts all are allowed.
bool may_follow(std::span<const TokenId> tokens, TokenId token) {
  std::uint32_t mixed = 17;
  for (const TokenId one : tokens) mixed = 31 * mixed + static_cast<std::uint32_t>(one);
  return mixed % 7 == 0 || (mixed + static_cast<std::uint32_t>(token)) % 3 != 0;
}
bool third(const MaskedText& text, std::span<std::uint32_t> allowed) {
  for (TokenId token = 0; token < vocabulary(); ++token) {
    if (!may_follow(text.tokens, token)) continue;
    allowed[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
  }
  return true;
}

GenerateRequest request_of(const char* text, const SamplingParams& sampling, std::uint64_t seed) {
  return {.prompt = target()->tokenizer().encode(text, true),
          .options = {.max_tokens = 30,
                      .sampling = DrafterFiles::get().few_characters(sampling),
                      .seed = seed,
                      .ignore_eos = true,
                      .mask = third,
                      .keep_logits = true}};
}

void expect_allowed(const GenerateRequest& request, const GenerateResult& result) {
  Tokens tokens = request.prompt;
  for (const TokenId id : result.ids) {
    EXPECT_TRUE(may_follow(tokens, id));
    tokens.push_back(id);
  }
}

class MaskOfDrafts : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(MaskOfDrafts, GreedyAndCoupledTextsArePlainOnesBitForBit) {
  std::int64_t n_accepted = 0;
  for (const auto& [verify, temperature] :
       {std::pair{"exact", 0.0}, std::pair{"coupled", 0.0}, std::pair{"coupled", 0.8}}) {
    for (const char* tree : {"", "widths:3,2,1"}) {
      SpeculationOptions options = test::speculation_of(GetParam());
      options.verify = verify;
      options.tree = tree;
      Generator generator(target(), options);
      const std::vector<GenerateRequest> requests = {
          request_of(DrafterFiles::kFewPrompt, {.temperature = temperature}, 3),
          request_of("Quick!", {.temperature = temperature, .frequency_penalty = 0.3}, 4)};
      const std::vector<GenerateResult> plain = Generator(target()).generate(requests);
      const std::vector<GenerateResult> drafted = generator.generate(requests);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(std::string(verify) + " " + tree);
        EXPECT_EQ(drafted[i].ids, plain[i].ids);
        EXPECT_EQ(drafted[i].logits, plain[i].logits);
        EXPECT_EQ(drafted[i].text, plain[i].text);
        EXPECT_EQ(drafted[i].ids.size(), 30U);
        expect_allowed(requests[i], plain[i]);
        n_accepted += drafted[i].statistics.accepted;
      }
    }
  }
  EXPECT_TRUE(n_accepted > 0 || GetParam().seldom_right);
}

TEST_P(MaskOfDrafts, SampledTextsHaveAllowedTokens) {
  for (const char* verify : {"exact", "traversal"}) {
    SpeculationOptions options = test::speculation_of(GetParam());
    options.verify = verify;
    Generator generator(target(), options);
    const GenerateRequest request = request_of(DrafterFiles::kFewPrompt, {.temperature = 1.5}, 5);
    expect_allowed(request, generator.generate({&request, 1}).front());
  }
}

INSTANTIATE_TEST_SUITE_P(, MaskOfDrafts, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// The mask has an effect: without it the text differs.
TEST(Mask, ChangesTheText) {
  GenerateRequest request = request_of(DrafterFiles::kFewPrompt, {}, 1);
  const GenerateResult masked = std::move(Generator(target()).generate({&request, 1}).front());
  request.options.mask = {};
  EXPECT_NE(std::move(Generator(target()).generate({&request, 1}).front()).ids, masked.ids);
}

// Target and drafter together, in any round.
TEST(Mask, IsAskedOnceForAPlace) {
  for (const char* name : {"model", "suffix", "relay", "staged", "recycling"}) {
    const auto* const drafter =
        std::find_if(std::begin(kDrafterCases), std::end(kDrafterCases),
                     [name](const DrafterCase& one) { return one.name == std::string(name); });
    ASSERT_NE(drafter, std::end(kDrafterCases));
    std::set<Tokens> places;
    std::size_t n_asked = 0;
    std::size_t n_committed = 0;
    GenerateRequest request = request_of(DrafterFiles::kFewPrompt, {.temperature = 1}, 2);
    request.options.mask = [&](const MaskedText& text, std::span<std::uint32_t> allowed) {
      ++n_asked;
      places.emplace(text.tokens.begin(), text.tokens.end());
      EXPECT_EQ(text.n_prompt, request.prompt.size());
      EXPECT_GE(text.n_committed, std::max(n_committed, text.n_prompt));
      EXPECT_GE(text.tokens.size(), text.n_committed);
      n_committed = text.n_committed;
      return third(text, allowed);
    };
    Generator generator(target(), test::speculation_of(*drafter));
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_EQ(places.size(), n_asked) << name;
    EXPECT_GE(n_asked, result.ids.size());
    EXPECT_GT(n_committed, request.prompt.size());
  }
}

// With a grammar, both apply.
TEST(Mask, StandsBesideAGrammar) {
  GenerateRequest request = request_of(DrafterFiles::kFewPrompt, {}, 1);
  request.options.grammar = Grammar::from_regex("[#%&@a-z]*");
  const TokenId banned = target()->tokenizer().encode("#", false).back();
  request.options.mask = [banned](const MaskedText&, std::span<std::uint32_t> allowed) {
    for (std::uint32_t& word : allowed) word = ~std::uint32_t{0};
    allowed[static_cast<std::size_t>(banned) / 32] &= ~(std::uint32_t{1} << (banned % 32));
    return true;
  };
  for (const char* drafter : {"none", "first:grammar,suffix"}) {
    Generator generator(target(), {.drafter = drafter});
    const GenerateResult result = std::move(generator.generate({&request, 1}).front());
    EXPECT_GT(result.ids.size(), 5U);
    EXPECT_EQ(result.text.find_first_not_of("%&@abcdefghijklmnopqrstuvwxyz"), std::string::npos)
        << result.text;
  }
}

std::string message_of(const std::exception_ptr& error) {
  if (!error) return {};
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

TEST(Mask, AnErrorEndsItsOwnRequest) {
  const GenerateRequest good = request_of(DrafterFiles::kFewPrompt, {}, 1);
  const std::vector<std::string> drafters = {"suffix", "lookahead"};
  const GenerateResult expected = std::move(Generator(target()).generate({&good, 1}).front());
  for (const bool throws : {true, false}) {
    GenerateRequest bad = good;
    const std::size_t n_last = good.prompt.size() + 9;
    bad.options.mask = [throws, n_last](const MaskedText& text, std::span<std::uint32_t> allowed) {
      if (text.tokens.size() < n_last) return third(text, allowed);
      if (throws) throw std::range_error("of the mask's own");
      return true;  // nothing is allowed
    };
    int n_tokens = 0;
    bad.options.on_token = [&n_tokens](const TokenEvent&) { ++n_tokens; };
    for (const std::string drafter : {"none", "suffix", "lookahead"}) {
      n_tokens = 0;
      Batch batch(target(), drafters, {.threads = 1});
      std::map<int, std::pair<GenerateResult, std::exception_ptr>> ended;
      const auto submit = [&](int name, const GenerateRequest& request) {
        batch.submit(request, {.drafter = drafter},
                     [&ended, name](GenerateResult result, std::exception_ptr error) {
                       ended[name] = {std::move(result), std::move(error)};
                     });
      };
      submit(0, good);
      submit(1, bad);
      submit(2, good);
      while (batch.step()) {
      }
      for (const int name : {0, 2}) {
        EXPECT_EQ(ended[name].second, nullptr);
        EXPECT_EQ(ended[name].first.ids, expected.ids);
        EXPECT_EQ(ended[name].first.logits, expected.logits);
      }
      EXPECT_THAT(message_of(ended[1].second),
                  HasSubstr(throws ? "of the mask's own"
                                   : "[follow mask] next token: expected one that the mask lets "
                                     "follow, got none"));
      EXPECT_LE(n_tokens, 9);
      EXPECT_GE(n_tokens, throws ? 0 : 9);
    }
    // Thrown out of a generator, which continues to work.
    Generator generator(target(), {.drafter = "suffix"});
    EXPECT_THROW(generator.generate({&bad, 1}), std::runtime_error);
    EXPECT_EQ(std::move(generator.generate({&good, 1}).front()).ids, expected.ids);
  }
}

// A preempted text is run again with the same masks.
TEST(Mask, GoesOnWhereATextGaveWay) {
  const auto bytes_per_token = static_cast<std::uint64_t>(target()->summary().kv_bytes_per_token);
  const auto small = Model::load(DrafterFiles::get().target(),
                                 {.kv_memory_bytes = 64 * bytes_per_token * 3, .threads = 1});
  Batch batch(small, std::vector<std::string>{"suffix"}, {.threads = 1});
  std::vector<GenerateRequest> requests;
  std::map<int, GenerateResult> ended;
  for (int name = 0; name < 4; ++name) {
    requests.push_back(request_of(DrafterFiles::kFewPrompt, {}, 1));
    requests.back().options.max_tokens = 60;
    batch.submit(requests.back(), {.drafter = name % 2 == 0 ? "suffix" : "none"},
                 [&ended, name](GenerateResult result, std::exception_ptr error) {
                   EXPECT_EQ(error, nullptr);
                   ended[name] = std::move(result);
                 });
  }
  while (batch.step()) {
  }
  const GenerateResult expected =
      std::move(Generator(target()).generate({&requests[0], 1}).front());
  for (int name = 0; name < 4; ++name) EXPECT_EQ(ended[name].ids, expected.ids);
}

}  // namespace
}  // namespace outrider
