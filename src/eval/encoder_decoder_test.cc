// SPDX-License-Identifier: Apache-2.0
// Evaluating encoder-decoders: texts are not confused, rules along references, sequential cascades.
// The model is a tiny T5 with a vocabulary of characters (tests/golden).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/speculation.h"
#include "eval/along_texts/teacher_forced.h"
#include "eval/along_texts/texts.h"
#include "eval/evaluation.h"
#include "eval/frontiers/sequential_generator.h"
#include "outrider/error.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"

namespace outrider::eval {
namespace {

using ::testing::HasSubstr;

std::string path_of_model() {
  return (outrider::test::golden_directory("t5_plain") / "model.gguf").string();
}

std::shared_ptr<const Model> load() {
  return Model::load(path_of_model(), {.weights = "f32", .kv = "f32", .threads = 1});
}

constexpr const char* kGiven = "the tother";
constexpr const char* kOther = "to the hethe";

SpeculationOptions itself_as_int4() {
  return {.drafter = "model:" + path_of_model() + ",weights=int4",
          .drafter_options = {.threads = 1}};
}

GenerateResult answer_of(const std::shared_ptr<const Model>& model, const std::string& given) {
  return Generator(model).generate(given, {.max_tokens = 24, .ignore_eos = true});
}

TEST(EncoderDecoderEval, AnswersAreTextsOfTheirOwn) {
  const auto model = load();
  Generator generator(model);
  Question question;
  question.item = {.number = 1, .place = "here", .fields = {}};
  question.prompt = kGiven;
  const AskOptions options{.generate = {.max_tokens = 24, .ignore_eos = true}, .request = {}};
  const auto record = ask(generator, *model, question, {}, options);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->texts.front(), answer_of(model, kGiven).text);
  EXPECT_NE(record->texts.front(), answer_of(model, kOther).text);
}

TEST(EncoderDecoderEval, WindowsStandBehindTheStartToken) {
  const auto model = load();
  const Tokenizer& tokenizer = model->tokenizer();
  for (const char* text : {"the hat", " the hat"}) {
    const auto windows = windows_behind_encoder({.given = kGiven, .text = text}, tokenizer, 0);
    ASSERT_EQ(windows.size(), 1u);
    std::vector<TokenId> expected = tokenizer.encode("the hat", false);
    expected.insert(expected.begin(), 0);
    EXPECT_EQ(windows.front().tokens, expected);
    EXPECT_EQ(windows.front().n_given, 1);
    EXPECT_EQ(windows.front().encoder_tokens, tokenizer.encode(kGiven, true));
    EXPECT_EQ(windows.front().encoder_tokens.back(), 1);  // the end token
  }
  EXPECT_TRUE(windows_behind_encoder({.given = kGiven, .text = " "}, tokenizer, 0).empty());
  EXPECT_THROW((void)windows_behind_encoder({.given = "", .text = "a"}, tokenizer, 0), Error);
}

// For the rules exact and chow:alpha=1 (the drafter's own): how many of the text's tokens they
// would emit.
std::pair<double, double> hits_of(const Model& model, const std::string& given,
                                  const std::vector<TokenId>& text) {
  const auto drafter = load_drafter_model(model, itself_as_int4());
  TeacherForced forced(model.language_model(), *drafter,
                       {.rules = {{.rule = "exact", .family = "exact", .parameter = {}},
                                  {.rule = "chow:alpha=1", .family = "chow", .parameter = {}}},
                        .samplings = {{.temperature = 0}},
                        .lengths = {3}});
  Window window{
      .tokens = {0}, .n_given = 1, .encoder_tokens = model.tokenizer().encode(given, true)};
  window.tokens.insert(window.tokens.end(), text.begin(), text.end());
  forced.add_text({&window, 1});
  return {forced.settings()[0].texts.front().hits, forced.settings()[1].texts.front().hits};
}

// With its own encoder input, every token of a greedy answer is the likeliest.
TEST(EncoderDecoderEval, RulesAlongReferencesReadTheEncodersText) {
  const auto model = load();
  const std::vector<TokenId> ids = answer_of(model, kGiven).ids;
  const auto [exact, drafted] = hits_of(*model, kGiven, ids);
  EXPECT_EQ(exact, static_cast<double>(ids.size()));
  EXPECT_LT(drafted, exact);
  EXPECT_GT(drafted, 0);
  EXPECT_LT(hits_of(*model, kOther, ids).first, exact);
}

// The target alone, and both models with a rule: the same text as a Generator's.
TEST(EncoderDecoderEval, SequentialCascadesWriteWhatSpeculationDoes) {
  const auto model = load();
  const GenerateOptions options{.max_tokens = 24, .ignore_eos = true};
  for (const auto& [cascade, rule] :
       {std::pair{"oracle:exact", "exact"}, std::pair{"oracle:diff,alpha=0.1", "diff:alpha=0.1"},
        std::pair{"token:chow,alpha=0.5", "chow:alpha=0.5"}}) {
    SCOPED_TRACE(cascade);
    SequentialGenerator sequential(model, itself_as_int4(), cascade);
    SpeculationOptions speculation = itself_as_int4();
    speculation.rule = rule;
    speculation.tree = "chain:length=3";
    Generator generator(model, speculation);
    std::vector<std::string> texts;
    for (const char* given : {kGiven, kOther}) {
      const GenerateRequest request{.prompt = model->tokenizer().encode(given, true),
                                    .options = options};
      const GenerateResult written = sequential.generate(request);
      EXPECT_EQ(written.ids, generator.generate({&request, 1}).front().ids);
      texts.push_back(written.text);
    }
    EXPECT_NE(texts[0], texts[1]);
  }
  // The drafter is never confident enough.
  SequentialGenerator in_turn(model, itself_as_int4(), "sequence:chow,alpha=0");
  const GenerateRequest request{.prompt = model->tokenizer().encode(kGiven, true),
                                .options = options};
  EXPECT_EQ(in_turn.generate(request).text, answer_of(model, kGiven).text);
  const GenerateRequest nothing{.prompt = {}, .options = options};
  EXPECT_THROW(in_turn.generate(nothing), Error);
}

TEST(EncoderDecoderEval, RefusesADecoderAsDrafter) {
  const auto model = load();
  const std::string decoder =
      (outrider::test::golden_directory("llama_plain") / "model.gguf").string();
  try {
    const SequentialGenerator sequential(model, {.drafter = "model:" + decoder}, "oracle:exact");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("an encoder-decoder, as the target is"));
  }
}

}  // namespace
}  // namespace outrider::eval
