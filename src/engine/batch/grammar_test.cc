// SPDX-License-Identifier: Apache-2.0
// Requests with a grammar, on a random model in files: the output has the form, drafted or not with
// the same bits, beside texts with other forms and with none. A text that cannot continue ends
// alone.
#include "outrider/grammar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/texts_of.h"
#include "outrider/batch.h"
#include "outrider/error.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;
using ::testing::HasSubstr;

std::shared_ptr<const Model> target() {
  static const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  return model;
}

// Short forms, since a random model's texts end only where they must.
std::vector<std::shared_ptr<const Grammar>> forms() {
  return {Grammar::from_json_schema(R"({"type":"object","properties":{
              "name":{"type":"string","maxLength":6},"kind":{"enum":["sparrow","swallow"]},
              "n":{"type":"integer","minimum":-20,"maximum":20},
              "list":{"type":"array","items":{"type":"boolean"},"maxItems":3}},
              "required":["name","kind","list"]})"),
          Grammar::from_regex("(?:[#%]{2}@|&){4,9}"),
          Grammar::from_gbnf("root ::= \"(\" root \")\" | \"[\" [#%&@]{1,8} \"]\"\n"), nullptr};
}

std::vector<GenerateRequest> requests_of(const SamplingParams& sampling, std::uint64_t seed) {
  std::vector<GenerateRequest> requests;
  for (const auto& form : forms()) {
    for (const char* const text : {DrafterFiles::kFewPrompt, "Quick!"}) {
      requests.push_back({.prompt = target()->tokenizer().encode(text, true),
                          .options = {.max_tokens = form == nullptr ? 20 : 80,
                                      .sampling = sampling,
                                      .seed = seed,
                                      .grammar = form,
                                      .keep_logits = true}});
    }
  }
  return requests;
}

// Checks that the whole output has the form; an unfinished text is the beginning of one.
void expect_form(const GenerateRequest& request, const GenerateResult& result) {
  if (request.options.grammar == nullptr) return;
  const TextsOf texts(CompiledGrammar(*request.options.grammar->compiled()));
  EXPECT_TRUE(texts.begins(result.text)) << result.text;
  if (result.finish_reason == FinishReason::stop) {
    EXPECT_TRUE(texts.has(result.text)) << result.text;
  }
}

void expect_same(const GenerateResult& a, const GenerateResult& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.finish_reason, b.finish_reason);
  ASSERT_EQ(a.logits.size(), b.logits.size());
  EXPECT_EQ(std::memcmp(a.logits.data(), b.logits.data(), a.logits.size() * sizeof(float)), 0);
}

class GrammarOfDrafts : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(GrammarOfDrafts, GreedyAndCoupledTextsArePlainOnesBitForBit) {
  const std::string spec = DrafterFiles::get().spec(GetParam());
  const SamplingParams warm{.temperature = 0.8, .top_k = 40, .frequency_penalty = 0.3};
  int n_stopped = 0;
  for (const auto& [verify, sampling] :
       {std::pair{"exact", SamplingParams{}}, std::pair{"coupled", SamplingParams{}},
        std::pair{"coupled", warm}}) {
    const std::vector<GenerateRequest> requests = requests_of(sampling, 3);
    const std::vector<GenerateResult> plain = Generator(target()).generate(requests);
    for (const std::string& drafter : {spec, "first:grammar," + spec}) {
      SCOPED_TRACE(drafter + " " + verify);
      std::unique_ptr<Generator> generator;
      try {
        SpeculationOptions options = test::speculation_of(GetParam());
        options.drafter = drafter;
        options.verify = verify;
        generator = std::make_unique<Generator>(target(), options);
      } catch (const UsageError&) {
        ASSERT_NE(drafter, spec);
        // Also not if joined by commas: the last parts would be ambiguous. Or not as a part of
        // others.
        const std::string name = spec.substr(0, spec.find(':'));
        ASSERT_TRUE(name == "first" || name == "auto" || name == "own") << spec;
        continue;
      }
      const std::vector<GenerateResult> together = generator->generate(requests);
      for (std::size_t i = 0; i < requests.size(); ++i) {
        SCOPED_TRACE(i);
        expect_same(together[i], plain[i]);
        expect_form(requests[i], together[i]);
        const GenerateResult alone = std::move(generator->generate({&requests[i], 1}).front());
        expect_same(alone, plain[i]);
        n_stopped += together[i].finish_reason == FinishReason::stop ? 1 : 0;
      }
    }
  }
  EXPECT_GT(n_stopped, 0);
}

// A token with up to five arbitrary tokens before it; after it a form, or none.
TEST_P(GrammarOfDrafts, OpeningsArePlainOnesBitForBit) {
  const TokenId end = target()->tokenizer().encode("@", false).back();
  constexpr std::ptrdiff_t kMax = 5;
  for (const auto& [verify, temperature] : {std::pair{"exact", 0.0}, std::pair{"coupled", 0.8}}) {
    std::vector<GenerateRequest> requests = requests_of({.temperature = temperature}, 5);
    for (GenerateRequest& request : requests) {
      request.options.opening_end = end;
      request.options.max_opening = kMax;
    }
    const std::vector<GenerateResult> plain = Generator(target()).generate(requests);
    SpeculationOptions options = test::speculation_of(GetParam());
    options.verify = verify;
    const std::vector<GenerateResult> drafted = Generator(target(), options).generate(requests);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      SCOPED_TRACE(i);
      expect_same(drafted[i], plain[i]);
      const std::vector<TokenId>& ids = drafted[i].ids;
      const auto at = std::find(ids.begin(), ids.end(), end);
      const bool ended =
          requests[i].options.grammar == nullptr && drafted[i].finish_reason == FinishReason::stop;
      ASSERT_TRUE(ended || at - ids.begin() <= kMax);
      if (requests[i].options.grammar == nullptr) continue;
      const TextsOf texts(CompiledGrammar(*requests[i].options.grammar->compiled()));
      const std::string behind = target()->tokenizer().decode({at + 1, ids.end()});
      EXPECT_TRUE(texts.begins(behind)) << behind;
    }
  }
}

TEST_P(GrammarOfDrafts, SampledTextsAreOfTheForm) {
  for (const char* const verify : {"exact", "traversal"}) {
    SpeculationOptions options = test::speculation_of(GetParam());
    options.verify = verify;
    Generator generator(target(), options);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const std::vector<GenerateRequest> requests = requests_of({.temperature = 1.5}, seed);
      const std::vector<GenerateResult> results = generator.generate(requests);
      for (std::size_t i = 0; i < requests.size(); ++i) expect_form(requests[i], results[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, GrammarOfDrafts, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

// With rules that read both models: both are masked.
TEST(GrammarOfRequests, RulesKeepTheForm) {
  const std::string drafter = DrafterFiles::get().spec({"model", "model:{draft}"});
  for (const char* const rule :
       {"chow:alpha=0.3", "lossy:alpha=0.5", "token-v3:alpha=0.4", "lenience:eps=0.2", "typical",
        "budget:kl=0.5", "fly:entropy=0,window=1"}) {
    SCOPED_TRACE(rule);
    Generator generator(target(),
                        {.drafter = drafter, .rule = rule, .drafter_options = {.threads = 1}});
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      const std::vector<GenerateRequest> requests = requests_of({.temperature = 1}, seed);
      const std::vector<GenerateResult> results = generator.generate(requests);
      for (std::size_t i = 0; i < requests.size(); ++i) expect_form(requests[i], results[i]);
    }
  }
}

TEST(GrammarOfRequests, CertainTextIsDraftedWithoutAModel) {
  const auto form = Grammar::from_regex("(?:swallow[.] ){6}end");
  const GenerateRequest request{.prompt = target()->tokenizer().encode("Quick!", true),
                                .options = {.max_tokens = 100, .grammar = form}};
  Generator generator(target(), {.drafter = "grammar"});
  const GenerateResult result = std::move(generator.generate({&request, 1}).front());
  EXPECT_EQ(result.text, "swallow. swallow. swallow. swallow. swallow. swallow. end");
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_GT(result.statistics.accepted, 0);
  EXPECT_EQ(result.statistics.drafter_passes, 0);
  // Without a grammar nothing is drafted.
  const GenerateRequest free{.prompt = request.prompt, .options = {.max_tokens = 10}};
  EXPECT_EQ(generator.generate({&free, 1}).front().statistics.drafted, 0);
}

TEST(GrammarOfRequests, EndTokensComeWhereTheTextMayEndAlone) {
  const auto form = Grammar::from_regex("#{3}");
  GenerateRequest request{.prompt = target()->tokenizer().encode("Quick!", true),
                          .options = {.max_tokens = 20, .grammar = form}};
  const GenerateResult result = std::move(Generator(target()).generate({&request, 1}).front());
  EXPECT_EQ(result.text, "###");
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  const std::vector<TokenId>& ends = target()->end_tokens();
  EXPECT_NE(std::find(ends.begin(), ends.end(), result.ids.back()), ends.end());
  // With ignore_eos, several of them.
  request.options.ignore_eos = true;
  const GenerateResult longer = std::move(Generator(target()).generate({&request, 1}).front());
  EXPECT_EQ(longer.text, "###");
  EXPECT_EQ(longer.ids.size(), 20U);
  EXPECT_EQ(longer.finish_reason, FinishReason::length);
}

TEST(GrammarOfRequests, WhatCannotGoOnEndsItsRequestAlone) {
  const float never = -std::numeric_limits<float>::infinity();
  const TokenId percent = target()->tokenizer().encode("%", false).front();
  std::vector<std::pair<GenerateResult, std::exception_ptr>> ended(3);
  Batch batch(target(), std::vector<std::string>{"suffix"});
  for (std::size_t i = 0; i < ended.size(); ++i) {
    GenerateRequest request{
        .prompt = target()->tokenizer().encode("Quick!", true),
        .options = {.max_tokens = 30, .grammar = Grammar::from_regex("#[%][#]{9}")}};
    if (i == 1) request.options.sampling.logit_bias = {{percent, never}};
    batch.submit(request, {.drafter = i == 2 ? "suffix" : "none"},
                 [&ended, i](GenerateResult result, std::exception_ptr error) {
                   ended[i] = {std::move(result), std::move(error)};
                 });
  }
  while (batch.step()) {
  }
  EXPECT_EQ(ended[0].first.text, "#%#########");
  EXPECT_EQ(ended[2].first.text, "#%#########");
  EXPECT_EQ(ended[0].second, nullptr);
  EXPECT_EQ(ended[2].second, nullptr);
  ASSERT_NE(ended[1].second, nullptr);
  try {
    std::rethrow_exception(ended[1].second);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("[follow grammar] next token"));
  }
}

// A long text in a bounded string has a state per character: the matcher discards old states.
TEST(GrammarOfRequests, LongTextsForgetWhatTheyNeedNoMore) {
  GrammarMatcher matcher(
      Grammar::from_json_schema(R"({"type":"string","maxLength":100000})")->compiled(),
      target()->token_trie());
  TokenHistory history;
  history.constrain(std::make_shared<GrammarMatcher>(matcher));
  const TokenId quote = target()->tokenizer().encode("\"", false).back();
  const TokenId sign = target()->tokenizer().encode("#", false).back();
  history.add_generated(quote);
  const GrammarMatcher* first = &history.matcher();
  bool renewed = false;
  for (int i = 0; i < 40'000; ++i) {
    history.matcher().allowed(history.state_behind({}));
    history.add_generated(sign);
    renewed = renewed || &history.matcher() != first;
    ASSERT_FALSE(history.matcher().is_full());
    ASSERT_GE(history.state_behind({}), 0);
  }
  EXPECT_TRUE(renewed);
  history.add_generated(quote);
  EXPECT_TRUE(history.matcher().complete(history.state_behind({})));
}

}  // namespace
}  // namespace outrider
