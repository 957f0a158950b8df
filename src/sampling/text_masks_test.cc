// SPDX-License-Identifier: Apache-2.0
#include "sampling/text_masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sampling/transform.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Tokens = std::vector<TokenId>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Asked {
  Tokens tokens;
  std::size_t n_prompt;
  std::size_t n_committed;
  bool operator==(const Asked&) const = default;
};

// Allows the tokens below 10, and the token 10 more than the number of tokens; after five tokens,
// all.
class Counting {
 public:
  TokenMask mask() {
    return [this](const MaskedText& text, std::span<std::uint32_t> allowed) {
      asked.push_back({{text.tokens.begin(), text.tokens.end()}, text.n_prompt, text.n_committed});
      for (const std::uint32_t word : allowed) EXPECT_EQ(word, 0U);
      allowed[0] = 0x3FF;
      const std::size_t id = text.tokens.size() + 10;
      allowed[id / 32] |= std::uint32_t{1} << (id % 32);
      return text.tokens.size() != 5;
    };
  }
  std::vector<Asked> asked;
};

const Tokens kPrompt = {7, 8};

TEST(TextMasks, SaysWhatFollowsAPlace) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 100);
  const auto words = masks.allowed({}, {});
  ASSERT_TRUE(words.has_value());
  EXPECT_THAT(*words, ElementsAre(0x3FFU | (1U << 12), 0U));
  EXPECT_TRUE(masks.is_allowed({}, {}, 2));
  EXPECT_TRUE(masks.is_allowed({}, {}, 12));
  EXPECT_FALSE(masks.is_allowed({}, {}, 13));
  EXPECT_FALSE(masks.is_allowed({}, {}, 200));
  // The text has 60 tokens, so token 70 is allowed: in the second 64-bit word.
  const Tokens many(58, 1);
  EXPECT_TRUE(masks.is_allowed({}, many, 70));
  EXPECT_TRUE(masks.is_allowed({}, many, 9));
  EXPECT_FALSE(masks.is_allowed({}, many, 69));
  EXPECT_FALSE(masks.is_allowed({}, many, 12));
  const Tokens three(3, 1);
  EXPECT_FALSE(masks.allowed({}, three).has_value());
  EXPECT_TRUE(masks.is_allowed({}, three, 99));
}

TEST(TextMasks, AsksOnceForEachPlace) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 100);
  for (int time = 0; time < 3; ++time) {
    masks.allowed({}, {});
    masks.allowed({}, Tokens{3});
    masks.allowed({}, Tokens{3, 4});
    masks.allowed(Tokens{3}, Tokens{4});  // the same place, committed by now
    masks.allowed({}, Tokens{4});
  }
  EXPECT_THAT(counting.asked, ElementsAre(Asked{{7, 8}, 2, 2}, Asked{{7, 8, 3}, 2, 2},
                                          Asked{{7, 8, 3, 4}, 2, 2}, Asked{{7, 8, 4}, 2, 2}));
}

TEST(TextMasks, RemembersWhatStandsBehindTheSettledTokens) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 100);
  masks.allowed({}, {});
  masks.allowed({}, Tokens{3});
  masks.allowed({}, Tokens{3, 4});
  masks.allowed({}, Tokens{3, 4, 5});
  masks.allowed({}, Tokens{6});
  counting.asked.clear();
  masks.settle(Tokens{3, 4});
  masks.allowed(Tokens{3, 4}, {});
  masks.allowed(Tokens{3, 4}, Tokens{5});
  EXPECT_THAT(counting.asked, IsEmpty());
  masks.allowed(Tokens{3, 4}, Tokens{6});  // this followed the settled tokens, not the prompt
  EXPECT_THAT(counting.asked, ElementsAre(Asked{{7, 8, 3, 4, 6}, 2, 4}));
  masks.settle(Tokens{3, 4});
  EXPECT_FALSE(masks.is_allowed(Tokens{3, 4}, {}, 12));
  EXPECT_TRUE(masks.is_allowed(Tokens{3, 4}, {}, 14));
}

// A drafter may ask about another text than the committed one.
TEST(TextMasks, AnswersForOtherTexts) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 100);
  masks.settle(Tokens{3, 4});
  EXPECT_TRUE(masks.is_allowed(Tokens{3}, Tokens{}, 13));
  EXPECT_TRUE(masks.is_allowed(Tokens{3}, Tokens{9}, 14));
  EXPECT_TRUE(masks.is_allowed(Tokens{9, 9, 9}, Tokens{9}, 16));
  EXPECT_EQ(counting.asked.size(), 3U);
  EXPECT_EQ(counting.asked[2], (Asked{{7, 8, 9, 9, 9, 9}, 2, 4}));
}

// More places than are kept: the answers stay right.
TEST(TextMasks, ForgetsTheOldestOfMany) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 4000);
  Tokens path;
  for (std::size_t n = 0; n < TextMasks::kMaxKept + 40; ++n) {
    EXPECT_TRUE(masks.is_allowed({}, path, static_cast<TokenId>(path.size()) + 12)) << n;
    path.push_back(1);
  }
  const std::size_t n_asked = counting.asked.size();
  path.pop_back();
  EXPECT_TRUE(masks.is_allowed({}, path, static_cast<TokenId>(path.size()) + 12));
  EXPECT_EQ(counting.asked.size(), n_asked);
  EXPECT_TRUE(masks.is_allowed({}, {}, 12));
  EXPECT_EQ(counting.asked.size(), n_asked + 1);
}

TEST(TextMasks, KeepsWhatIsThrownAndAsksNoMore) {
  int n_asked = 0;
  TextMasks masks(
      [&n_asked](const MaskedText& text, std::span<std::uint32_t> allowed) {
        ++n_asked;
        if (text.tokens.size() == 3) throw std::range_error("of the mask's own");
        allowed[0] = 8;
        return true;
      },
      kPrompt, 10);
  EXPECT_FALSE(masks.is_allowed({}, {}, 1));
  EXPECT_EQ(masks.failure(), nullptr);
  EXPECT_TRUE(masks.is_allowed({}, Tokens{3}, 1));
  EXPECT_TRUE(masks.is_allowed({}, {}, 1));
  EXPECT_EQ(n_asked, 2);
  EXPECT_THROW(std::rethrow_exception(masks.failure()), std::range_error);
}

// Nothing may follow a forbidden token, and the mask is not called.
TEST(TextMasks, AsksForNoPlaceThatIsNotReached) {
  Counting counting;
  TextMasks masks(counting.mask(), kPrompt, 100);
  const auto words = masks.allowed({}, Tokens{50, 3});
  ASSERT_TRUE(words.has_value());
  EXPECT_THAT(*words, ElementsAre(0U, 0U));
  EXPECT_THAT(counting.asked, ElementsAre(Asked{{7, 8}, 2, 2}));
}

TEST(MaskedHistory, PenalisesByTheMaskBehindTheGeneratedTokensAndThePath) {
  // Allows token 0 and one that grows with the text; after five tokens, all.
  const TokenMask mask = [](const MaskedText& text, std::span<std::uint32_t> allowed) {
    allowed[0] = 1 | (1U << text.tokens.size());
    return text.tokens.size() != 5;
  };
  TokenHistory history;
  history.add_prompt(kPrompt);
  history.mask_by(std::make_shared<TextMasks>(mask, kPrompt, 6));
  const Transform transform({.temperature = 1}, 6);
  EXPECT_TRUE(transform.changes_logits(history));
  std::vector<float> logits(6, 1.0F);
  std::vector<TokenLogit> replaced;
  transform.penalise(logits, history, {}, &replaced);
  EXPECT_THAT(logits, ElementsAre(1, -kInfinity, 1, -kInfinity, -kInfinity, -kInfinity));
  EXPECT_EQ(replaced.size(), 4U);
  history.add_generated(0);
  const TokenHistory copy = history;
  history.add_generated(0);
  std::vector<float> behind(6, 1.0F);
  transform.penalise(behind, copy, {});
  EXPECT_THAT(behind, ElementsAre(1, -kInfinity, -kInfinity, 1, -kInfinity, -kInfinity));
  behind.assign(6, 1.0F);
  transform.penalise(behind, history, {});
  EXPECT_THAT(behind, ElementsAre(1, -kInfinity, -kInfinity, -kInfinity, 1, -kInfinity));
  behind.assign(6, 1.0F);
  transform.penalise(behind, history, Tokens{4});
  EXPECT_THAT(behind, ElementsAre(1, 1, 1, 1, 1, 1));
  EXPECT_THAT(history.generated(), ElementsAre(0, 0));
}

}  // namespace
}  // namespace outrider
