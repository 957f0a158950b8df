// SPDX-License-Identifier: Apache-2.0
// Drafters that need nothing but the target, on real weights. At temperature 0 their texts are the
// golden ones and their logits plain decoding's, bit for bit. Every round drafts and accepts what
// an independent account of the method predicts, which uses nothing but the model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "model/load_model.h"
#include "outrider/generate.h"
#include "outrider/model.h"
#include "sampling/counter_chance.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Tokens = std::vector<TokenId>;

fs::path stories() { return fs::path(OUTRIDER_SHARED_DATA) / "models" / "stories260K"; }

std::vector<nlohmann::json> goldens() {
  std::ifstream file(stories() / "golden.json");
  return nlohmann::json::parse(file).get<std::vector<nlohmann::json>>();
}

// The model's likeliest tokens after a text, optionally without some of its layers; each text is
// run by itself from its first token.
class Likeliest {
 public:
  explicit Likeliest(std::vector<int> skip_layers = {})
      : model_(load_model(stories(), {.n_threads = 1})), skip_layers_(std::move(skip_layers)) {}
  TokenId operator()(const Tokens& text) { return best(text, 1).front(); }
  // The likeliest first; among equals, the lower id.
  Tokens best(const Tokens& text, std::size_t count) {
    auto [at, is_new] = known_.try_emplace(text);
    if (is_new) {
      const auto sequence = model_->open({});
      const TokenBlock block{.sequence = sequence.get(), .tokens = text, .parents = {}};
      ForwardOutput output;
      model_->forward(
          {&block, 1},
          {.logits = {.kind = RowSet::Kind::last_of_each_block}, .skip_layers = skip_layers_},
          output);
      const auto row = output.logits_row(0);
      Tokens& ids = at->second;
      ids.resize(row.size());
      std::iota(ids.begin(), ids.end(), 0);
      std::stable_sort(ids.begin(), ids.end(), [row](TokenId a, TokenId b) {
        return row[static_cast<std::size_t>(a)] > row[static_cast<std::size_t>(b)];
      });
      ids.resize(std::min(ids.size(), kKnown));
    }
    const Tokens& ids = at->second;
    return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(std::min(ids.size(), count))};
  }
  const ModelConfig& config() const { return model_->config(); }

 private:
  std::unique_ptr<LanguageModel> model_;
  std::vector<int> skip_layers_;
  static constexpr std::size_t kKnown = 8;
  std::map<Tokens, Tokens> known_;  // the first few
};

struct Rounds {
  std::vector<int> accepted;
  std::int64_t drafted = 0;
};

// The number of accepted tokens of a set of paths after the first n tokens of the text.
int matched(const std::vector<Tokens>& paths, const Tokens& text, std::size_t n) {
  std::size_t most = 0;
  for (const Tokens& path : paths) {
    std::size_t length = 0;
    while (length < path.size() && text[n + length] == path[length]) ++length;
    most = std::max(most, length);
  }
  return static_cast<int>(most);
}

// Lookahead decoding by positions. Token (s, v) of the window is that of step s at place v; the
// root of round r is at place r. The token (s + 1, v + 1) is the model's prediction after (s, v).
// In round r the oldest step is o = max(0, r - (N - 2)) and the newest is r (up to r = N - 2; after
// that there are N - 1 of them). Before (s, v) come the text, then step o at the places r + 1 to v
// - (s - o), and then the diagonal up to it.
Rounds lookahead(Likeliest& likeliest, const Tokens& text, std::size_t n_prompt, int width,
                 int ngram, std::size_t n_guesses) {
  std::map<std::pair<int, int>, TokenId> window;
  const auto borrowed = [](const Tokens& from, int column) {
    const auto block = philox4x32(
        {static_cast<std::uint32_t>(from.size()), 0, static_cast<std::uint32_t>(column), 1U << 30},
        {0, 0});
    return from[static_cast<std::size_t>(std::uint64_t{block[0]} * from.size() >> 32)];
  };
  const Tokens prompt(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n_prompt));
  for (int column = 1; column < width + ngram - 2; ++column) {
    window[{0, column}] = borrowed(prompt, column);
  }
  std::vector<Tokens> seen;  // N-grams, the most recent last.
  Rounds rounds;
  std::size_t n = n_prompt;
  for (int round = 0; n < text.size(); ++round) {
    const std::size_t most = std::min<std::size_t>(text.size() - n - 1, ngram - 1);
    std::vector<Tokens> guesses;
    std::set<Tokens> taken;
    for (auto at = seen.rbegin(); at != seen.rend() && guesses.size() < n_guesses; ++at) {
      if (at->front() != text[n - 1] || !taken.insert(*at).second) continue;
      guesses.emplace_back(at->begin() + 1, at->begin() + 1 + static_cast<std::ptrdiff_t>(most));
    }
    std::set<Tokens> nodes;
    for (const Tokens& guess : guesses) {
      for (std::size_t depth = 1; depth <= guess.size(); ++depth) {
        nodes.emplace(guess.begin(), guess.begin() + static_cast<std::ptrdiff_t>(depth));
      }
    }
    rounds.drafted += static_cast<std::int64_t>(nodes.size());
    rounds.accepted.push_back(matched(guesses, text, n));

    if (most > 0) {
      const int oldest = std::max(0, round - (ngram - 2));
      const int newest = round;
      const bool full = round >= ngram - 2;
      const int columns = full ? width : width + ngram - 2 - round;
      const Tokens now(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
      for (int column = 0; column < columns; ++column) {
        Tokens before = now;
        for (int place = round + 1; place <= round + column; ++place) {
          before.push_back(window.at({oldest, place}));
        }
        Tokens diagonal = {column == 0 ? text[n - 1] : before.back()};
        for (int step = oldest + 1; step <= newest; ++step) {
          before.push_back(window.at({step, round + column + step - oldest}));
          diagonal.push_back(before.back());
        }
        diagonal.push_back(likeliest(before));
        window[{newest + 1, round + column + newest - oldest + 1}] = diagonal.back();
        if (full) seen.push_back(diagonal);
      }
      // End tokens are excluded, by the tokens of the text after the round.
      const Tokens then(text.begin(),
                        text.begin() + static_cast<std::ptrdiff_t>(n) + rounds.accepted.back() + 1);
      for (int column = 0; column < columns; ++column) {
        auto& token = window.at({newest + 1, round + column + newest - oldest + 1});
        const auto& ends = likeliest.config().end_tokens;
        if (std::find(ends.begin(), ends.end(), token) == ends.end()) continue;
        token = borrowed(then, full ? column : column - 1);
      }
    }
    n += static_cast<std::size_t>(rounds.accepted.back()) + 1;
  }
  return rounds;
}

// A chain of the shortened model's likeliest tokens.
Rounds layerskip(Likeliest& shortened, const Tokens& text, std::size_t n_prompt,
                 std::size_t length) {
  Rounds rounds;
  for (std::size_t n = n_prompt; n < text.size();) {
    Tokens before(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    while (before.size() < n + std::min(length, text.size() - n - 1)) {
      before.push_back(shortened(before));
    }
    const Tokens draft(before.begin() + static_cast<std::ptrdiff_t>(n), before.end());
    rounds.drafted += static_cast<std::int64_t>(draft.size());
    rounds.accepted.push_back(matched({draft}, text, n));
    n += static_cast<std::size_t>(rounds.accepted.back()) + 1;
  }
  return rounds;
}

// Jacobi iteration by positions of the text: guesses[p] is the guess for token p.
Rounds jacobi(Likeliest& likeliest, const Tokens& text, std::size_t n_prompt, std::size_t length) {
  Rounds rounds;
  std::map<std::size_t, TokenId> guesses;
  for (std::size_t n = n_prompt; n < text.size();) {
    Tokens draft;
    for (std::size_t p = n; p < n + std::min(length, text.size() - n - 1); ++p) {
      draft.push_back(guesses.count(p) > 0 ? guesses.at(p) : text[n - 1]);
    }
    rounds.drafted += static_cast<std::int64_t>(draft.size());
    rounds.accepted.push_back(matched({draft}, text, n));
    guesses.clear();
    Tokens before(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(n));
    for (const TokenId token : draft) {
      before.push_back(token);
      guesses[before.size()] = likeliest(before);
    }
    n += static_cast<std::size_t>(rounds.accepted.back()) + 1;
  }
  return rounds;
}

// Variants of the method, to check that the test would detect them.
struct OtherwiseRecycled {
  bool keeps_the_oldest = false;     // an existing row is kept
  bool standing_alone = false;       // rejected nodes write nothing
  bool rejected_are_newest = false;  // and the text itself is not
};

// Token Recycling by texts. A token's row comes from the last evaluated text that ended with it:
// rejected texts write first, then the accepted ones by length.
Rounds recycling(Likeliest& likeliest, const Tokens& text, std::size_t n_prompt, std::size_t k,
                 const std::vector<std::size_t>& widths, const OtherwiseRecycled& otherwise = {}) {
  Rounds rounds;
  std::map<TokenId, Tokens> rows;
  for (std::size_t n = n_prompt; n < text.size();) {
    const std::size_t most = std::min(text.size() - n - 1, widths.size());
    const auto last_of = [&](const Tokens& path) {
      return path.empty() ? text[n - 1] : path.back();
    };
    std::vector<Tokens> paths(1);
    std::size_t begin = 0;
    for (std::size_t level = 0; level < most; ++level) {
      const std::size_t end = paths.size();
      for (; begin < end; ++begin) {
        const Tokens row = rows[last_of(paths[begin])];
        for (std::size_t rank = 0; rank < std::min(widths[level], row.size()); ++rank) {
          Tokens path = paths[begin];
          path.push_back(row[rank]);
          paths.push_back(path);
        }
      }
    }
    rounds.drafted += static_cast<std::int64_t>(paths.size()) - 1;
    rounds.accepted.push_back(matched(paths, text, n));
    for (const bool standing : {otherwise.rejected_are_newest, !otherwise.rejected_are_newest}) {
      for (const Tokens& path : paths) {
        const auto ahead = text.begin() + static_cast<std::ptrdiff_t>(n);
        if (std::equal(path.begin(), path.end(), ahead) != standing) continue;
        if (otherwise.standing_alone && !standing) continue;
        Tokens& row = rows[last_of(path)];
        if (otherwise.keeps_the_oldest && !row.empty()) continue;
        Tokens before(text.begin(), ahead);
        before.insert(before.end(), path.begin(), path.end());
        row = likeliest.best(before, k);
      }
    }
    n += static_cast<std::size_t>(rounds.accepted.back()) + 1;
  }
  return rounds;
}

class SelfDrafting : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(stories() / "golden.json")) GTEST_SKIP() << "no shared data folder";
    model_ = Model::load(stories(), {.threads = 1});
    likeliest_ = std::make_unique<Likeliest>();
  }

  // Runs `drafter` on every golden prompt and compares texts, logits and, by `account`, rounds.
  template <class Account>
  void check(const std::string& drafter, int n_tokens, const Account& account,
             const std::string& tree = "") {
    Generator plain(model_);
    Generator drafting(model_, {.drafter = drafter, .tree = tree});
    std::int64_t n_accepted = 0;
    for (const nlohmann::json& golden : goldens()) {
      const std::string prompt = golden.at("prompt");
      const Tokens expected = golden.at("greedy_ids");
      const GenerateOptions options{
          .max_tokens = n_tokens, .ignore_eos = true, .keep_logits = true};
      const GenerateResult without = plain.generate(prompt, options);
      const GenerateResult with = drafting.generate(prompt, options);
      const auto n_common = static_cast<std::ptrdiff_t>(std::min(expected.size(), with.ids.size()));
      EXPECT_TRUE(std::equal(expected.begin(), expected.begin() + n_common, with.ids.begin()));
      EXPECT_EQ(with.ids, without.ids) << prompt;
      ASSERT_EQ(with.logits.size(), without.logits.size());
      EXPECT_EQ(std::memcmp(with.logits.data(), without.logits.data(),
                            with.logits.size() * sizeof(float)),
                0);
      Tokens text = golden.at("prompt_ids");
      const std::size_t n_prompt = text.size();
      text.insert(text.end(), without.ids.begin(), without.ids.end());
      const Rounds rounds = account(text, n_prompt);
      EXPECT_EQ(with.accepted_per_round, rounds.accepted) << drafter << ": " << prompt;
      EXPECT_EQ(with.statistics.drafted, rounds.drafted) << drafter << ": " << prompt;
      n_accepted += with.statistics.accepted;
    }
    EXPECT_GT(n_accepted, 0) << drafter;
  }

  std::shared_ptr<const Model> model_;
  std::unique_ptr<Likeliest> likeliest_;
};

TEST_F(SelfDrafting, LookaheadIsThePapers) {
  struct Size {
    int width, ngram, guesses;
  };
  for (const Size& size : {Size{7, 5, 7}, Size{4, 3, 2}, Size{5, 2, 3}, Size{1, 4, 1}}) {
    check("lookahead:window=" + std::to_string(size.width) +
              ",ngram=" + std::to_string(size.ngram) + ",guesses=" + std::to_string(size.guesses),
          96, [&](const Tokens& text, std::size_t n_prompt) {
            return lookahead(*likeliest_, text, n_prompt, size.width, size.ngram,
                             static_cast<std::size_t>(size.guesses));
          });
  }
}

// As a part of another drafter it keeps its window too: the first part has already guessed what the
// second guesses.
TEST_F(SelfDrafting, LookaheadWorksAsAPart) {
  check("merge:lookahead+lookahead:guesses=2", 96, [&](const Tokens& text, std::size_t n_prompt) {
    return lookahead(*likeliest_, text, n_prompt, 7, 5, 7);
  });
}

TEST_F(SelfDrafting, LayerskipIsTheShortenedModel) {
  struct Skip {
    const char* spec;
    std::vector<int> layers;
  };
  for (const Skip& skip : {Skip{"layerskip:layers=3", {3, 4}}, Skip{"layerskip:skip=1+3", {1, 3}},
                           Skip{"layerskip:skip=2", {2}}}) {
    Likeliest shortened(skip.layers);
    check(skip.spec, 96, [&](const Tokens& text, std::size_t n_prompt) {
      return layerskip(shortened, text, n_prompt, 5);
    });
  }
}

TEST_F(SelfDrafting, JacobiIsFixedPointIteration) {
  for (const std::size_t length : {1, 5, 12}) {
    check("jacobi:length=" + std::to_string(length), 96,
          [&](const Tokens& text, std::size_t n_prompt) {
            return jacobi(*likeliest_, text, n_prompt, length);
          });
  }
}

TEST_F(SelfDrafting, RecyclingIsThePapers) {
  struct Size {
    std::size_t k;
    const char* tree;
    std::vector<std::size_t> widths;
  };
  for (const Size& size : {Size{8, "widths:3,2,1", {3, 2, 1}}, Size{2, "widths:4,1", {4, 1}},
                           Size{1, "chain:length=4", {1, 1, 1, 1}}}) {
    check(
        "recycling:k=" + std::to_string(size.k), 96,
        [&](const Tokens& text, std::size_t n_prompt) {
          return recycling(*likeliest_, text, n_prompt, size.k, size.widths);
        },
        size.tree);
  }
}

// Mutants: the accounts above distinguish the method from close variants.
TEST_F(SelfDrafting, RecyclingIsNothingElse) {
  for (const OtherwiseRecycled& otherwise :
       {OtherwiseRecycled{.keeps_the_oldest = true}, OtherwiseRecycled{.standing_alone = true},
        OtherwiseRecycled{.rejected_are_newest = true}}) {
    bool differs = false;
    for (const nlohmann::json& golden : goldens()) {
      Tokens text = golden.at("prompt_ids");
      const std::size_t n_prompt = text.size();
      const Tokens ids = golden.at("greedy_ids");
      text.insert(text.end(), ids.begin(), ids.end());
      const Rounds is = recycling(*likeliest_, text, n_prompt, 8, {3, 2, 1});
      const Rounds mutant = recycling(*likeliest_, text, n_prompt, 8, {3, 2, 1}, otherwise);
      differs = differs || is.accepted != mutant.accepted || is.drafted != mutant.drafted;
    }
    EXPECT_TRUE(differs) << otherwise.keeps_the_oldest << otherwise.standing_alone
                         << otherwise.rejected_are_newest;
  }
}

}  // namespace
}  // namespace outrider
