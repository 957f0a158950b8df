// SPDX-License-Identifier: Apache-2.0
#include "model/translated_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "model/prefill.h"
#include "outrider/error.h"
#include "tests/support/models/table_model.h"

namespace outrider {
namespace {

using test::TableModel;

// Five tokens here, six there: 0, 2 and 4 are shared, 1 and 3 are spelled.
const std::vector<std::vector<TokenId>> kSpelled = {{5}, {0, 3}, {1}, {3, 3, 0}, {2}};
const std::vector<TokenId> kShared = {kNoToken, 2, 4, kNoToken, kNoToken, 0};
constexpr std::uint32_t kSeed = 3;

std::unique_ptr<TranslatedModel> make_model(VocabularyTranslation translation = {
                                                .spelled = kSpelled, .shared = kShared}) {
  return std::make_unique<TranslatedModel>(std::make_unique<TableModel>(6, kSeed),
                                           std::move(translation));
}

std::vector<TokenId> spell(const std::vector<TokenId>& tokens) {
  std::vector<TokenId> read;
  for (const TokenId token : tokens) {
    const auto& spelled = kSpelled[static_cast<std::size_t>(token)];
    read.insert(read.end(), spelled.begin(), spelled.end());
  }
  return read;
}

// The model's own logits after these ids, at the shared tokens.
std::vector<float> expected_behind(const std::vector<TokenId>& read) {
  const std::vector<float> said = TableModel(6, kSeed).logits(read);
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  return {said[5], kNever, said[1], kNever, said[2]};
}

std::vector<float> row(const ForwardOutput& output, int index) {
  const auto logits = output.logits_row(index);
  return {logits.begin(), logits.end()};
}

void keep_all(Sequence& sequence) {
  std::vector<int> path(static_cast<std::size_t>(sequence.n_pending()));
  std::iota(path.begin(), path.end(), 0);
  sequence.keep(path);
}

TEST(TranslatedModel, SaysOfASharedTokenWhatTheModelSays) {
  const auto model = make_model();
  EXPECT_EQ(model->config().vocabulary_size, 5);
  const auto sequence = model->open({});
  const std::vector<TokenId> tokens = {0, 1, 3, 2};
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
  ForwardOutput output;
  model->forward({&block, 1}, {}, output);
  ASSERT_EQ(output.logits.n_rows(), 4);
  for (std::size_t n = 1; n <= tokens.size(); ++n) {
    const std::vector<TokenId> prefix(tokens.begin(),
                                      tokens.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(row(output, static_cast<int>(n) - 1), expected_behind(spell(prefix))) << n;
  }
  EXPECT_EQ(sequence->n_pending(), 4);
  const std::vector<int> two = {0, 1};
  sequence->keep(two);
  EXPECT_EQ(sequence->n_kept(), 2);
  EXPECT_EQ(sequence->n_pending(), 0);
}

TEST(TranslatedModel, TreesKeepTheirPaths) {
  const auto model = make_model();
  const auto sequence = model->open({});
  ForwardOutput output;
  const std::vector<TokenId> root = {3, 1};
  const TokenBlock first{.sequence = sequence.get(), .tokens = root, .parents = {}};
  model->forward({&first, 1}, {.logits = {.kind = RowSet::Kind::last_of_each_block, .rows = {}}},
                 output);
  ASSERT_EQ(output.logits.n_rows(), 1);
  EXPECT_EQ(row(output, 0), expected_behind(spell({3, 1})));
  keep_all(*sequence);
  // 1 and 2 after the root, 4 and 3 after the 1; then, in another pass, 1 after the 3.
  const std::vector<TokenId> tree = {1, 2, 4, 3};
  const std::vector<int> parents = {-1, -1, 0, 0};
  const TokenBlock block{.sequence = sequence.get(), .tokens = tree, .parents = parents};
  const std::vector<int> listed = {1, 3};
  model->forward({&block, 1}, {.logits = {.kind = RowSet::Kind::listed, .rows = listed}}, output);
  ASSERT_EQ(output.logits.n_rows(), 2);
  EXPECT_EQ(row(output, 0), expected_behind(spell({3, 1, 2})));
  EXPECT_EQ(row(output, 1), expected_behind(spell({3, 1, 1, 3})));
  const std::vector<TokenId> deeper = {1};
  const std::vector<int> behind = {3};
  const TokenBlock next{.sequence = sequence.get(), .tokens = deeper, .parents = behind};
  model->forward({&next, 1}, {}, output);
  EXPECT_EQ(row(output, 0), expected_behind(spell({3, 1, 1, 3, 1})));

  const auto before = sequence->fork();
  const std::vector<int> path = {0, 3, 4};
  sequence->keep(path);
  EXPECT_EQ(sequence->n_kept(), 5);
  EXPECT_EQ(before->n_kept(), 2);
  for (const auto& [of, tokens] :
       {std::pair{sequence.get(), std::vector<TokenId>{3, 1, 1, 3, 1, 2}},
        std::pair{before.get(), std::vector<TokenId>{3, 1, 2}}}) {
    const std::vector<TokenId> last = {2};
    const TokenBlock behind_all{.sequence = of, .tokens = last, .parents = {}};
    model->forward({&behind_all, 1}, {}, output);
    EXPECT_EQ(row(output, 0), expected_behind(spell(tokens)));
  }
  sequence->truncate(3);
  EXPECT_EQ(sequence->n_kept(), 3);
  EXPECT_EQ(sequence->n_pending(), 0);
}

// A translation that joins a 0 and a following 1: the last word's ids may have to be replaced when
// the text continues.
VocabularyTranslation joining() {
  return {
      .spelled = kSpelled, .shared = kShared, .read = [](std::span<const TokenId> tokens, bool) {
        std::vector<TokenId> read;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
          if (tokens[i] == 0 && i + 1 < tokens.size() && tokens[i + 1] == 1) {
            read.push_back(4);
            ++i;
          } else {
            const auto& spelled = kSpelled[static_cast<std::size_t>(tokens[i])];
            read.insert(read.end(), spelled.begin(), spelled.end());
          }
        }
        return read;
      }};
}

TEST(TranslatedModel, ATextIsCutAnewAsItGoesOn) {
  const auto model = make_model(joining());
  const auto sequence = model->open({});
  ForwardOutput output;
  const std::vector<TokenId> prompt = {2, 0};
  prefill(*model, *sequence, prompt, output);
  EXPECT_EQ(sequence->n_kept(), 2);
  const RowSet last{.kind = RowSet::Kind::last_of_each_block, .rows = {}};
  const std::vector<TokenId> root = {1};
  const TokenBlock block{.sequence = sequence.get(), .tokens = root, .parents = {}};
  model->forward({&block, 1}, {.logits = last}, output);
  EXPECT_EQ(row(output, 0), expected_behind({1, 4}));  // the 0 that was read is dropped
  keep_all(*sequence);
  EXPECT_EQ(sequence->n_kept(), 3);
  // A draft is translated token by token; the next reading splits the text differently.
  const std::vector<TokenId> draft = {0, 1};
  const std::vector<int> parents = {-1, 0};
  const TokenBlock drafted{.sequence = sequence.get(), .tokens = draft, .parents = parents};
  model->forward({&drafted, 1}, {}, output);
  EXPECT_EQ(row(output, 1), expected_behind({1, 4, 5, 0, 3}));
  keep_all(*sequence);
  const auto copy = sequence->fork();
  for (Sequence* of : {copy.get(), sequence.get()}) {
    const std::vector<TokenId> next = {4};
    const TokenBlock behind{.sequence = of, .tokens = next, .parents = {}};
    model->forward({&behind, 1}, {.logits = last}, output);
    EXPECT_EQ(row(output, 0), expected_behind({1, 4, 4, 2}));
  }
  sequence->keep({});  // nothing is kept
  EXPECT_EQ(sequence->n_kept(), 5);
  sequence->truncate(4);
  const TokenBlock other{.sequence = sequence.get(), .tokens = root, .parents = {}};
  model->forward({&other, 1}, {.logits = last}, output);
  EXPECT_EQ(row(output, 0), expected_behind({1, 4, 4}));
  keep_all(*sequence);
  sequence->truncate(4);
  // Rows within a block: kept tokens are translated as a text first, then token by token.
  const std::vector<TokenId> both = {1, 3};
  const TokenBlock within{.sequence = sequence.get(), .tokens = both, .parents = {}};
  model->forward({&within, 1}, {}, output);
  EXPECT_EQ(row(output, 0), expected_behind({1, 4, 5, 0, 3}));
  EXPECT_EQ(row(output, 1), expected_behind({1, 4, 5, 0, 3, 3, 3, 0}));
  sequence->truncate(0);
  model->forward({&within, 1}, {}, output);
  EXPECT_EQ(row(output, 0), expected_behind({0, 3}));
}

// A long piece that is not kept leaves no trace in later rows.
TEST(TranslatedModel, WhatWasNotKeptWasNotRead) {
  const RowSet last{.kind = RowSet::Kind::last_of_each_block, .rows = {}};
  const std::vector<TokenId> one(300, 2);
  const std::vector<TokenId> other(300, 4);
  ForwardOutput output;
  const auto run = [&](TranslatedModel& model, Sequence& sequence,
                       const std::vector<TokenId>& tokens) {
    const TokenBlock block{.sequence = &sequence, .tokens = tokens, .parents = {}};
    model.forward({&block, 1}, {.logits = last}, output);
    return row(output, 0);
  };
  const auto model = make_model(joining());
  const auto fresh = model->open({});
  const std::vector<float> expected = run(*model, *fresh, other);
  for (const int way : {0, 1, 2}) {
    const auto sequence = model->open({});
    run(*model, *sequence, one);
    if (way == 0) sequence->truncate(0);
    if (way == 1) sequence->keep({});
    const auto copy = sequence->fork();
    EXPECT_EQ(run(*model, way == 2 ? *copy : *sequence, other), expected) << way;
  }
}

TEST(TranslatedModel, RoomIsTheModelsOwn) {
  const auto model = make_model();
  const auto sequence = model->open({});
  const int context = model->config().context_length;
  const std::vector<TokenId> tokens = {0, 3, 1};
  EXPECT_EQ(model->remaining_context(*sequence, tokens),
            context - 7);  // a text may get a token prepended
  ForwardOutput output;
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
  model->forward({&block, 1}, {}, output);
  keep_all(*sequence);
  EXPECT_EQ(model->remaining_context(*sequence, {}), context - 7);
}

TEST(TranslatedModel, RefusesWhatDoesNotFitAndChangesNothing) {
  EXPECT_THROW(make_model({.spelled = {{6}}, .shared = {}}), Error);
  EXPECT_THROW(make_model({.spelled = {{}}, .shared = {}}), Error);
  EXPECT_THROW(make_model({.spelled = {{1}}, .shared = {1}}), Error);
  EXPECT_THROW(make_model({.spelled = {{1}}, .shared = {0, 0, 0, 0, 0, 0, 0}}), Error);
  const auto model = make_model();
  const auto sequence = model->open({});
  ForwardOutput output;
  const std::vector<TokenId> tokens = {0, 5};
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
  EXPECT_THROW(model->forward({&block, 1}, {}, output), Error);
  EXPECT_EQ(sequence->n_pending(), 0);
  const std::vector<int> layers = {1};
  EXPECT_THROW(model->forward({&block, 1}, {.feature_layers = layers}, output), Error);
}

TEST(TranslatedModel, APassThatFailsLeavesNoRows) {
  const VocabularyTranslation translation = {.spelled = kSpelled, .shared = kShared};
  TranslatedModel model(std::make_unique<TableModel>(6, kSeed, 8), translation);
  const auto sequence = model.open({});
  const std::vector<TokenId> tokens = {0, 2, 4};
  const TokenBlock block{.sequence = sequence.get(), .tokens = tokens, .parents = {}};
  ForwardOutput output;
  model.forward({&block, 1}, {}, output);
  EXPECT_EQ(output.logits.n_rows(), 3);
  const std::vector<TokenId> more(8, 0);  // beyond the model's context
  const TokenBlock long_block{.sequence = sequence.get(), .tokens = more, .parents = {}};
  EXPECT_THROW(model.forward({&long_block, 1}, {}, output), Error);
  EXPECT_EQ(output.logits.n_rows(), 0);
}

}  // namespace
}  // namespace outrider
