// SPDX-License-Identifier: Apache-2.0
// The scores that `outrider train seq2seq` reports for answers, compared with sacreBLEU.
#include "apps/trainer/answer_score.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outrider::cli {
namespace {

const std::vector<std::string> kReferences = {
    "the small cat sat on the blue mat", "two dogs run over the bridge",
    "a woman reads a book in her garden", "three birds fly over the quiet lake today"};

TEST(AnswerScore, IsSacreBleus) {
  const std::vector<std::string> answers = {"the small cat sat on the red mat", "two dogs run over",
                                            "a man reads a book in the garden",
                                            "three birds fly over the quiet lake today"};
  const AnswerScore score = score_answers(answers, kReferences);
  // BLEU().corpus_score(answers, [references]).score of sacrebleu 2.6.0: 28 words against 30, so
  // that the brevity penalty applies. The mean of the texts' own scores is 67.4.
  EXPECT_NEAR(score.bleu, 68.4990092612184, 1e-9);
  EXPECT_LT(score.interval.low, score.bleu);
  EXPECT_GT(score.interval.high, score.bleu);
  EXPECT_GE(score.interval.low, 38.2);  // The worst text's score is 38.26.
  EXPECT_LE(score.interval.high, 100.1);
  EXPECT_EQ(score.signature.rfind("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp", 0), 0u)
      << score.signature;
}

TEST(AnswerScore, EachAnswerHasItsOwnReference) {
  EXPECT_NEAR(score_answers(kReferences, kReferences).bleu, 100, 1e-9);
  const std::vector<std::string> turned(kReferences.rbegin(), kReferences.rend());
  EXPECT_LT(score_answers(turned, kReferences).bleu, 20);
}

}  // namespace
}  // namespace outrider::cli
