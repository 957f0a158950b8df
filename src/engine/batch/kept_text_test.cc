// SPDX-License-Identifier: Apache-2.0
// A generator that keeps its last text (Generator::keep_last_text): the common beginning of a later
// prompt is not run again, and nothing else differs. The reference is a generator that has seen no
// other text.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "model/prefill.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "tests/support/goldens/golden_models.h"
#include "tests/support/proofs/drafter_cases.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider {
namespace {

using test::DrafterCase;
using test::DrafterFiles;
using test::kDrafterCases;

using Tokens = std::vector<TokenId>;

Tokens joined(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// `n` tokens that repeat `pattern`.
Tokens repeated(const Tokens& pattern, std::size_t n) {
  Tokens tokens;
  tokens.reserve(n);
  for (std::size_t i = 0; i < n; ++i) tokens.push_back(pattern[i % pattern.size()]);
  return tokens;
}

GenerateResult generate(Generator& generator, const GenerateRequest& request) {
  return std::move(generator.generate({&request, 1}).front());
}

// A conversation with a generator that keeps its texts; each turn is compared with a new generator.
class Conversation {
 public:
  Conversation(std::shared_ptr<const Model> model, SpeculationOptions speculation)
      : model_(std::move(model)),
        speculation_(std::move(speculation)),
        keeping_(model_, speculation_) {
    keeping_.keep_last_text(true);
  }

  // Runs a prompt and sets `last` to the prompt and its answer. `drafts_alike`: each round drafts
  // the same as in a new text.
  GenerateResult turn(const Tokens& prompt, const GenerateOptions& options, bool drafts_alike) {
    const GenerateRequest request{.prompt = prompt, .options = options};
    Generator alone(model_, speculation_);
    const GenerateResult expected = generate(alone, request);
    GenerateResult result = generate(keeping_, request);
    EXPECT_EQ(result.ids, expected.ids);
    EXPECT_EQ(result.logits, expected.logits);
    EXPECT_EQ(result.text, expected.text);
    EXPECT_EQ(result.finish_reason, expected.finish_reason);
    EXPECT_EQ(expected.statistics.reused, 0);
    if (drafts_alike) {
      EXPECT_EQ(result.accepted_per_round, expected.accepted_per_round);
      EXPECT_EQ(result.statistics.drafted, expected.statistics.drafted);
    }
    n_drafted += result.statistics.drafted;
    n_accepted += result.statistics.accepted;
    // A text's last token has not been run unless it was drafted; the root of the first round is
    // always run.
    const auto differ = std::mismatch(last.begin(), last.end() - (last.empty() ? 0 : 1),
                                      prompt.begin(), prompt.end() - 1)
                            .first;
    n_common = differ - last.begin();
    last = joined(prompt, result.ids);
    return result;
  }

  Generator& keeping() { return keeping_; }

  Tokens last;                // prompt and answer of the last turn
  std::int64_t n_common = 0;  // tokens of the prompt that the turn before has run
  std::int64_t n_drafted = 0;
  std::int64_t n_accepted = 0;

 private:
  std::shared_ptr<const Model> model_;
  SpeculationOptions speculation_;
  Generator keeping_;
};

class KeptText : public ::testing::TestWithParam<DrafterCase> {};

TEST_P(KeptText, GoesOnWithTheBitsAndDraftsOfANewOne) {
  const auto model = Model::load(DrafterFiles::get().target(), {.threads = 1});
  const Tokens prompt = model->tokenizer().encode(DrafterFiles::kFewPrompt, true);
  const Tokens other = model->tokenizer().encode("&@%# Quick! &@#", true);
  // Longer than a pass of prefill.
  const Tokens long_prompt = repeated(prompt, static_cast<std::size_t>(kPrefillRows) + 30);
  const bool drafts_alike = GetParam().context_determined;
  // Drafters that read the target's features need some tokens run again: EAGLE and Medusa one, MTP
  // one per module, and those that the last round left for the next draft.
  const bool reads_features = test::plan_of(GetParam()).traits.reads_features;
  constexpr std::int64_t kMaxAgain = 3 + 5;
  for (const std::string verify : {"exact", "coupled"}) {
    SpeculationOptions options = test::speculation_of(GetParam());
    options.verify = verify;
    Conversation conversation(model, options);
    int n_turns = 0;
    const auto turn = [&](const Tokens& tokens, double temperature, int max_tokens) {
      SCOPED_TRACE("turn " + std::to_string(n_turns++) + " " + verify);
      const GenerateResult result = conversation.turn(
          tokens,
          {.max_tokens = max_tokens,
           .sampling = DrafterFiles::get().few_characters({.temperature = temperature}),
           .seed = static_cast<std::uint64_t>(n_turns),
           .ignore_eos = true,
           .keep_logits = true},
          drafts_alike);
      const std::int64_t reused = result.statistics.reused;
      EXPECT_LE(reused, conversation.n_common + 1);
      EXPECT_GE(reused, conversation.n_common - (reads_features ? kMaxAgain : 0));
    };
    turn(prompt, 0, 12);
    EXPECT_EQ(conversation.n_common, 0);
    turn(joined(conversation.last, other), 0, 20);  // continues the conversation
    EXPECT_EQ(conversation.n_common, static_cast<std::int64_t>(prompt.size()) + 11);
    turn(joined(conversation.last, other), 0.8, 9);
    Tokens shortened = conversation.last;  // its last tokens differ from the answer
    shortened.resize(shortened.size() - 5);
    turn(joined(shortened, other), 0, 7);
    turn(conversation.last, 1, 1);  // asked to continue
    turn(conversation.last, 0, 2);
    turn(prompt, 0, 15);  // starts again
    EXPECT_EQ(conversation.n_common, static_cast<std::int64_t>(prompt.size()) - 1);
    turn(prompt, 0, 15);
    turn(other, 0.8, 5);
    turn(long_prompt, 0, 4);
    turn(joined(conversation.last, long_prompt), 0, 20);
    turn({prompt.front()}, 0, 6);
    EXPECT_GT(conversation.n_drafted, 0);
    EXPECT_TRUE(conversation.n_accepted > 0 || GetParam().seldom_right);
  }
}

INSTANTIATE_TEST_SUITE_P(, KeptText, ::testing::ValuesIn(kDrafterCases),
                         [](const auto& info) { return std::string(info.param.name); });

std::string golden_file(const char* name) {
  return (test::golden_directory(name) / "model.gguf").string();
}

class KeptTextOfFamily : public ::testing::TestWithParam<const char*> {
 protected:
  // The golden's own tokens, repeated.
  Tokens text(std::size_t n) const { return repeated(golden_.ids, n); }
  Conversation conversation(const std::string& drafter) const {
    return {Model::load(golden_file(GetParam()), {.threads = 2}), {.drafter = drafter}};
  }

  test::GoldenModel golden_{GetParam()};
  GenerateOptions options_{.max_tokens = 10, .ignore_eos = true, .keep_logits = true};
};

// A window's pages are freed: beyond them nothing can be reused.
class KeptWindow : public KeptTextOfFamily {};

TEST_P(KeptWindow, GoesOnWhereItsPagesAreThere) {
  for (const std::string& drafter : {std::string("none"), "model:" + golden_file(GetParam())}) {
    Conversation talk = conversation(drafter);
    talk.turn(text(150), options_, true);
    // At the text's end all pages of the window exist.
    EXPECT_EQ(talk.turn(joined(talk.last, text(20)), options_, true).statistics.reused,
              talk.n_common);
    EXPECT_EQ(talk.n_common, 159);
    // Before the window they are gone.
    EXPECT_EQ(talk.turn(text(30), options_, true).statistics.reused, 0);
    EXPECT_EQ(talk.n_common, 29);
    EXPECT_EQ(talk.turn(joined(talk.last, text(9)), options_, true).statistics.reused, 39);
  }
}

INSTANTIATE_TEST_SUITE_P(, KeptWindow,
                         ::testing::Values("gemma3_scaled", "gemma2_capped", "gemma4_shared"),
                         [](const auto& info) { return std::string(info.param); });

// Recurrent layers, the target's and a drafter's, can be rewound only to boundaries of pages of 64
// tokens.
class KeptStates : public KeptTextOfFamily {};

TEST_P(KeptStates, GoesOnWhereAStateIsThere) {
  for (const std::string& drafter :
       {std::string("none"), std::string("suffix"), "model:" + golden_file(GetParam())}) {
    SCOPED_TRACE(drafter);
    Conversation talk = conversation(drafter);
    talk.turn(text(150), options_, true);
    EXPECT_EQ(talk.turn(joined(talk.last, text(20)), options_, true).statistics.reused,
              talk.n_common);
    EXPECT_EQ(talk.n_common, 159);
    EXPECT_EQ(talk.turn(joined(text(140), {5, 6, 7}), options_, true).statistics.reused, 128);
    EXPECT_GE(talk.n_common, 140);
    EXPECT_EQ(talk.turn(text(30), options_, true).statistics.reused, 0);
    EXPECT_EQ(talk.n_common, 29);
    EXPECT_EQ(talk.turn(joined(talk.last, text(9)), options_, true).statistics.reused, 39);
  }
}

INSTANTIATE_TEST_SUITE_P(, KeptStates,
                         ::testing::Values("lfm2_tied", "qwen3_5_plain", "granite_hybrid_plain",
                                           "nemotron_h_plain"),
                         [](const auto& info) { return std::string(info.param); });

// Beyond its original context (48 tokens) a longrope text has other keys from the first token on.
class KeptLongText : public KeptTextOfFamily {};

TEST_P(KeptLongText, IsAnotherSequenceBeyondItsOriginalContext) {
  for (const std::string& drafter : {std::string("none"), "model:" + golden_file(GetParam()),
                                     std::string("layerskip:layers=1")}) {
    Conversation talk = conversation(drafter);
    talk.turn(text(20), options_, true);
    EXPECT_EQ(talk.turn(joined(talk.last, text(5)), options_, true).statistics.reused, 29);
    talk.turn(joined(talk.last, text(40)), options_, true);  // beyond 48 tokens
    EXPECT_EQ(talk.n_common, 44);
    EXPECT_EQ(talk.turn(joined(talk.last, text(5)), options_, true).statistics.reused, 94);
    EXPECT_EQ(talk.turn(text(20), options_, true).statistics.reused, 0);  // shorter again
    EXPECT_EQ(talk.n_common, 19);
    options_.max_tokens = 40;  // crosses 48 tokens while generating
    EXPECT_EQ(talk.turn(text(25), options_, true).statistics.reused, 20);
    EXPECT_EQ(talk.turn(joined(talk.last, text(5)), options_, true).statistics.reused, 64);
    options_.max_tokens = 10;
  }
}

INSTANTIATE_TEST_SUITE_P(, KeptLongText, ::testing::Values("phi3_crossing"),
                         [](const auto& info) { return std::string(info.param); });

class KeptBetweenCalls : public ::testing::Test {
 protected:
  KeptBetweenCalls()
      : model_(Model::load(DrafterFiles::get().target(), {.threads = 1})),
        prompt_(model_->tokenizer().encode(DrafterFiles::kFewPrompt, true)),
        generator_(model_, {.drafter = "suffix:across=1000"}) {
    generator_.keep_last_text(true);
    expected_ = generate(generator_, request_).ids;
  }
  std::int64_t reused() {
    const GenerateResult result = generate(generator_, request_);
    EXPECT_EQ(result.ids, expected_);
    return result.statistics.reused;
  }

  std::shared_ptr<const Model> model_;
  Tokens prompt_;
  Generator generator_;
  GenerateRequest request_{.prompt = prompt_, .options = {.max_tokens = 10, .ignore_eos = true}};
  Tokens expected_;
  std::int64_t whole_ = static_cast<std::int64_t>(prompt_.size()) - 1;
};

TEST_F(KeptBetweenCalls, TheTextThatEndedLast) {
  EXPECT_EQ(reused(), whole_);
  EXPECT_EQ(reused(), whole_);
  const std::vector<GenerateRequest> both = {request_, request_};
  for (const GenerateResult& result : generator_.generate(both)) {
    EXPECT_EQ(result.ids, expected_);
    EXPECT_EQ(result.statistics.reused, whole_);
  }
  EXPECT_EQ(reused(), whole_);
  GenerateRequest nothing = request_;
  nothing.options.max_tokens = 0;
  EXPECT_EQ(generate(generator_, nothing).statistics.reused, 0);
  EXPECT_EQ(reused(), whole_);
}

TEST_F(KeptBetweenCalls, OnlyWhereAsked) {
  generator_.keep_last_text(false);
  EXPECT_EQ(reused(), 0);
  EXPECT_EQ(reused(), 0);
  generator_.keep_last_text(true);
  EXPECT_EQ(reused(), 0);
  EXPECT_EQ(reused(), whole_);
}

// A failed text is not kept; the earlier kept one stays.
TEST_F(KeptBetweenCalls, AfterAnError) {
  GenerateRequest failing = request_;
  failing.options.on_token = [](const TokenEvent&) { throw std::runtime_error("no more"); };
  failing.prompt = joined(failing.prompt, expected_);
  EXPECT_THROW(generate(generator_, failing), std::runtime_error);
  EXPECT_EQ(reused(), whole_);
}

TEST_F(KeptBetweenCalls, AfterARequestThatIsRefused) {
  GenerateRequest refused = request_;
  refused.prompt.push_back(-1);
  EXPECT_ANY_THROW(generate(generator_, refused));
  EXPECT_EQ(reused(), whole_);
}

// A cancelled text's prompt and answer are reused like any other's.
TEST_F(KeptBetweenCalls, AfterACancelledText) {
  std::atomic<bool> cancel = false;
  GenerateRequest cancelled = request_;
  cancelled.options.cancel = &cancel;
  cancelled.options.on_token = [&cancel](const TokenEvent&) { cancel = true; };
  const GenerateResult cut = generate(generator_, cancelled);
  EXPECT_EQ(cut.finish_reason, FinishReason::cancelled);
  GenerateRequest next = request_;
  next.prompt = joined(next.prompt, cut.ids);
  next.prompt.push_back(prompt_.front());
  EXPECT_EQ(generate(generator_, next).statistics.reused,
            static_cast<std::int64_t>(next.prompt.size()) - 1 - (cut.ids.size() > 1 ? 0 : 1));
  generate(generator_, cancelled);  // before its first pass
  EXPECT_EQ(reused(), whole_);
}

}  // namespace
}  // namespace outrider
