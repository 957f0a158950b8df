// SPDX-License-Identifier: Apache-2.0
// A continuation's text and its end, with models that write a known chain of tokens. Where a test
// names a program, the expected texts and ids come from that program with the same files.
// transformers includes the ending token in the text; here it is left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "engine/batch/end_tokens.h"
#include "outrider/generate.h"
#include "tests/support/models/chain_model.h"

namespace outrider {
namespace {

using test::ChainVocabulary;
using Ids = std::vector<TokenId>;

class Continuation : public ::testing::Test {
 protected:
  // Each piece is followed by the next, the last by the first.
  std::shared_ptr<const Model> chain(const ChainVocabulary& vocabulary,
                                     test::Json tokenizer_config = {}, test::Json config = {}) {
    const auto n = static_cast<int>(vocabulary.pieces.size());
    std::vector<int> next;
    for (int i = 0; i < n; ++i) next.push_back((i + 1) % n);
    test::ChainModel model = test::make_chain_model(next);
    if (!config.is_null()) model.config.update(config);
    test::write_chain(model, test::tokenizer_of(vocabulary), directory_.path());
    if (!tokenizer_config.is_null()) {
      test::write_json(tokenizer_config, directory_.path() / "tokenizer_config.json");
    }
    return Model::load(directory_.path(), {.threads = 1});
  }

  test::TemporaryDirectory directory_;
};

GenerateResult run(const std::shared_ptr<const Model>& model, const std::string& prompt,
                   GenerateOptions options) {
  return Generator(model).generate(prompt, options);
}

// The rule: a continuation is what decoding prompt and continuation together adds to decoding the
// prompt (tokenizers 0.23.1: "the cat sats on" and "the").
TEST_F(Continuation, KeepsTheBlankOfItsFirstWord) {
  const auto model = chain({.pieces = {"\u2581the", "\u2581cat", "\u2581sat", "s", "\u2581on"},
                            .added = {},
                            .byte_level = false});
  std::string streamed;
  GenerateOptions options{.max_tokens = 4};
  options.on_token = [&streamed](const TokenEvent& event) { streamed += event.text; };
  const GenerateResult result = run(model, "the", options);
  EXPECT_EQ(result.ids, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(result.text, " cat sats on");
  EXPECT_EQ(streamed, result.text);
  // A first piece without a blank gets none.
  EXPECT_EQ(run(model, "the cat sat", {.max_tokens = 2}).text, "s on");
  // Stop strings see the blank.
  EXPECT_EQ(run(model, "the", {.max_tokens = 4, .stop_strings = {" cat"}}).text, "");
  EXPECT_EQ(run(model, "the", {.max_tokens = 4, .stop_strings = {" sat"}}).text, " cat");
  EXPECT_EQ(run(model, "the", {.max_tokens = 4, .stop_strings = {" sat"}}).stop_string, " sat");
  EXPECT_EQ(run(model, "the", {.max_tokens = 4, .stop_strings = {"nowhere"}}).stop_string, "");
}

// tokenizers 0.23.1: ids 0, 1, 2 are "a\u00e9", ids 0, 1 alone end with U+FFFD.
TEST_F(Continuation, FinishesACharacterThatThePromptBegan) {
  const auto model = chain({.pieces = {"a", "\xc3", "\xa9", "b"}, .added = {}, .byte_level = true});
  const GenerateRequest request{.prompt = {0, 1}, .options = {.max_tokens = 2}};
  EXPECT_EQ(Generator(model).generate({&request, 1}).front().text, "\u00e9b");
  EXPECT_EQ(run(model, "a", {.max_tokens = 2}).text, "\u00e9");
}

// A run of byte tokens is decoded when it ends; the prompt's part of it belongs to the prompt
// (tokenizers 0.23.1: "a\u00e9ba\ufffd" and "a\u00e9").
TEST_F(Continuation, DoesNotRepeatByteTokensOfThePrompt) {
  ChainVocabulary vocabulary{
      .pieces = {"a", "<0xC3>", "<0xA9>", "b"}, .added = {}, .byte_level = false};
  test::Json tokenizer = test::tokenizer_of(vocabulary);
  tokenizer["model"]["byte_fallback"] = true;
  tokenizer["pre_tokenizer"] = nullptr;
  tokenizer["decoder"] = {{"type", "Sequence"},
                          {"decoders", {{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}}};
  test::write_chain(test::make_chain_model({1, 2, 3, 0}), tokenizer, directory_.path());
  const auto model = Model::load(directory_.path(), {.threads = 1});
  const auto behind = [&model](Ids prompt) {
    const GenerateRequest request{.prompt = std::move(prompt), .options = {.max_tokens = 3}};
    return Generator(model).generate({&request, 1}).front().text;
  };
  EXPECT_EQ(behind({0, 1, 2}), "ba\uFFFD");  // the prompt's text is "a\u00e9"
  EXPECT_EQ(behind({0, 1}), "\u00e9ba");
  EXPECT_EQ(behind({0}), "\u00e9b");
}

// transformers 5.12.1, generate(stop_strings=...): stops after the mark, and after <plain>.
TEST_F(Continuation, AStopTextThatIsASpecialTokenStopsAtIt) {
  const auto model = chain({.pieces = {"a", "b", "<|mark|>", "c", "<plain>"},
                            .added = {{"<|mark|>", true}, {"<plain>", false}},
                            .byte_level = true});
  const GenerateResult marked = run(model, "a", {.max_tokens = 9, .stop_strings = {"<|mark|>"}});
  EXPECT_EQ(marked.text, "b");
  EXPECT_EQ(marked.finish_reason, FinishReason::stop);
  // An added token that is not special appears in the text, and a stop string matches it there.
  const GenerateResult plain = run(model, "a", {.max_tokens = 9, .stop_strings = {"x", "<plain>"}});
  EXPECT_EQ(plain.text, "bc");
  EXPECT_EQ(plain.finish_reason, FinishReason::stop);
}

TEST_F(Continuation, ShowsTheSpecialTokensThatItIsAskedFor) {
  const auto model = chain({.pieces = {"a", "<call>", "b", "<other>", "\xc3", "\xa9", "</call>"},
                            .added = {{"<call>", true}, {"<other>", true}, {"</call>", true}},
                            .byte_level = true});
  const auto shown = [&](std::vector<TokenId> tokens, std::vector<std::string> stops = {},
                         bool ends = false) {
    std::string streamed;
    GenerateOptions options{.max_tokens = 6, .stop_strings = std::move(stops)};
    options.shown_tokens = std::move(tokens);
    if (ends) options.stop_tokens = {6};
    options.on_token = [&streamed](const TokenEvent& event) { streamed += event.text; };
    const GenerateResult result = run(model, "a", options);
    EXPECT_EQ(streamed, result.text);
    return result.text;
  };
  EXPECT_EQ(shown({}), "b\u00e9");
  EXPECT_EQ(shown({1, 6}), "<call>b\u00e9</call>");
  EXPECT_EQ(shown({3}), "b<other>\u00e9");
  // A token that is text anyway, and an id that is no token.
  EXPECT_EQ(shown({0, 2, 77}), "b\u00e9");
  EXPECT_EQ(shown({1, 6}, {"/"}), "<call>b\u00e9<");
  EXPECT_EQ(shown({1, 6}, {"ll>b"}), "<ca");
  // A stop string matches the token, shown or not.
  EXPECT_EQ(shown({1, 6}, {"<other>"}), "<call>b");
  EXPECT_EQ(shown({1, 6}, {}, true), "<call>b\u00e9");
}

// The blank of a first word depends on what precedes it, shown or not.
TEST_F(Continuation, KeepsBlanksAroundShownTokens) {
  const auto model = chain({.pieces = {"\u2581the", "<call>", "\u2581cat"},
                            .added = {{"<call>", true}},
                            .byte_level = false});
  const auto behind = [&model](const std::string& prompt, std::vector<TokenId> tokens) {
    GenerateOptions options{.max_tokens = 2};
    options.shown_tokens = std::move(tokens);
    return run(model, prompt, options).text;
  };
  EXPECT_EQ(behind("the", {}), " cat");
  EXPECT_EQ(behind("the", {1}), "<call> cat");
  EXPECT_EQ(behind("<call>", {}), behind("<call>", {1}));  // tokens of the prompt are not shown
}

// llama.cpp 0.7.0 counts <|im_end|> among the ends it knows, special or not (llama-vocab.cpp).
TEST_F(Continuation, TheTokenThatEndsATextIsNoPartOfIt) {
  const ChainVocabulary vocabulary{.pieces = {"a", "b", "<|im_end|>", "c", "<stop>"},
                                   .added = {{"<|im_end|>", false}, {"<stop>", false}},
                                   .byte_level = true};
  for (const bool named : {false, true}) {
    const auto model =
        chain(vocabulary, named ? test::Json{{"eos_token", "<stop>"}} : test::Json::object());
    const GenerateResult result = run(model, "a", {.max_tokens = 9});
    EXPECT_EQ(result.text, "b");
    EXPECT_EQ(result.ids, (Ids{1, 2}));
    EXPECT_EQ(result.finish_reason, FinishReason::stop);
    EXPECT_EQ(run(model, "c", {.max_tokens = 9}).text, named ? "" : "<stop>ab");
    // With ignore_eos the text shows it.
    EXPECT_EQ(run(model, "a", {.max_tokens = 3, .ignore_eos = true}).text, "b<|im_end|>c");
    EXPECT_EQ(run(model, "a", {.max_tokens = 9, .ignore_eos = true, .stop_tokens = {3}}).text,
              "b<|im_end|>");
  }
}

// config.json, generation_config.json and tokenizer_config.json each name another end token.
// (transformers 5.12.1 uses generation_config's alone; users reported chats that ran on.)
TEST_F(Continuation, EndsAtWhatAnyFileCallsAnEnd) {
  const ChainVocabulary vocabulary{.pieces = {"a", "<e1>", "b", "<e2>", "c", "<e3>"},
                                   .added = {{"<e1>", true}, {"<e2>", true}, {"<e3>", true}},
                                   .byte_level = true};
  test::write_json({{"eos_token_id", {3}}}, directory_.path() / "generation_config.json");
  const auto model = chain(vocabulary, {{"eos_token", "<e3>"}}, {{"eos_token_id", 1}});
  EXPECT_EQ(model->end_tokens(), (Ids{1, 3, 5}));
  EXPECT_EQ(run(model, "a", {.max_tokens = 9}).text, "");
  EXPECT_EQ(run(model, "b", {.max_tokens = 9}).text, "");
  EXPECT_EQ(run(model, "c", {.max_tokens = 9}).text, "");
  EXPECT_EQ(run(model, "a", {.max_tokens = 5, .ignore_eos = true}).text, "bc");
}

// The spellings are llama.cpp's (0.7), from its list of tokens that end a generation.
TEST_F(Continuation, KnownSpellingsOfAddedTokensEndATextWhateverTheFilesName) {
  const auto ends = [this](std::vector<std::string> pieces, std::map<std::string, bool> added) {
    return chain({.pieces = std::move(pieces), .added = std::move(added), .byte_level = true})
        ->end_tokens();
  };
  EXPECT_EQ(
      ends({"a", "<|eot_id|>", "<end_of_turn>"}, {{"<|eot_id|>", true}, {"<end_of_turn>", true}}),
      (Ids{1, 2}));
  // A piece of plain text is not an end mark.
  EXPECT_EQ(ends({"a", "</s>", "<|im_end|>"}, {{"<|im_end|>", true}}), (Ids{2}));
  // In gpt-oss and similar vocabularies <|end|> ends only a part of an answer.
  EXPECT_EQ(ends({"a", "<|end|>"}, {{"<|end|>", true}}), (Ids{1}));
  EXPECT_EQ(ends({"a", "<|end|>", "<|return|>", "<|call|>"},
                 {{"<|end|>", true}, {"<|return|>", true}, {"<|call|>", true}}),
            (Ids{2, 3}));
}

// An output matrix stored beside a tied embedding counts, unless it equals the embedding
// (transformers 5.12.1: "bca" and "aaa").
TEST_F(Continuation, AStoredHeadCountsWhateverTheConfigSaysOfTying) {
  const ChainVocabulary vocabulary{.pieces = {"a", "b", "c"}, .added = {}, .byte_level = true};
  for (const bool own : {false, true}) {
    test::ChainModel chain = test::make_chain_model({1, 2, 0});
    chain.config["tie_word_embeddings"] = true;
    if (!own) chain.tensors["lm_head.weight"] = chain.tensors["model.embed_tokens.weight"];
    test::write_chain(chain, test::tokenizer_of(vocabulary), directory_.path());
    const auto model = Model::load(directory_.path(), {.threads = 1});
    EXPECT_EQ(run(model, "a", {.max_tokens = 3}).text, own ? "bca" : "aaa");
  }
}

// transformers 5.12.1: the same ids and the same text.
TEST_F(Continuation, TokensThatOnlyTheConfigurationNamesAreTokens) {
  const ChainVocabulary vocabulary{.pieces = {"a", "b", "<", ">"}, .added = {}, .byte_level = true};
  const test::Json config = {
      {"added_tokens_decoder",
       {{"5", {{"content", "<x>"}, {"special", true}}},
        {"4", {{"content", "<y>"}, {"special", false}, {"normalized", false}}}}}};
  const auto model = chain(vocabulary, config, {{"vocab_size", 4}});
  const Tokenizer& tokenizer = model->tokenizer();
  EXPECT_EQ(tokenizer.encode("a<x>b<y>", false), (Ids{0, 5, 1, 4}));
  EXPECT_TRUE(tokenizer.is_special(5));
  EXPECT_FALSE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.decode(Ids{0, 5, 4, 1}), "a<y>b");
}

}  // namespace
}  // namespace outrider
