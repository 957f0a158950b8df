// SPDX-License-Identifier: Apache-2.0
// The real pair of the tests: stories260K is the target, weak260K the drafter, with beginnings of
// stories as prompts. Also the statistics that emitted tokens must satisfy.
//
// Every emitted token x is mapped to U = F(x-) + V * prob(x). F and prob are the target's own
// distribution at that position, and V is uniform noise (the randomised probability integral
// transform). If tokens are drawn correctly, U is uniform and independent from token to token,
// whatever the drafter proposed. All noise is seeded: a test always passes or always fails.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_REAL_PAIR_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_REAL_PAIR_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/load_model.h"
#include "outrider/tokenizer.h"
#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "speculate/drafters/model_drafter.h"
#include "tests/support/nightly.h"
#include "tests/support/statistics.h"

namespace outrider::test {

class RealPair {
 public:
  static RealPair* load() {
    const std::filesystem::path models = std::filesystem::path(OUTRIDER_SHARED_DATA) / "models";
    if (!std::filesystem::exists(models / "stories260K" / "config.json")) return nullptr;
    static RealPair pair(models);
    return &pair;
  }

  LanguageModel& target() { return *target_; }
  ModelDrafter& drafter() { return drafter_; }

  // The next beginning of a story: 8 to 39 tokens, beginning-of-sequence first.
  std::vector<TokenId> next_prompt() {
    const std::vector<TokenId>& story = stories_[next_story_++ % stories_.size()];
    const std::size_t n_tokens = 8 + next_story_ * 7 % 32;
    return {story.begin(),
            story.begin() + static_cast<std::ptrdiff_t>(std::min(n_tokens, story.size()))};
  }

 private:
  explicit RealPair(const std::filesystem::path& models)
      : target_(load_model(models / "stories260K", {.n_threads = 1})),
        drafter_(load_model(models / "weak260K", {.n_threads = 1}),
                 target_->config().vocabulary_size) {
    const auto tokenizer = Tokenizer::load(models / "stories260K");
    std::ifstream file(std::filesystem::path(OUTRIDER_SHARED_DATA) / "text" /
                       "tinystories_2MiB.txt");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    constexpr std::string_view kEnd = "<|endoftext|>";
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find(kEnd, begin), text.size());
      const std::string story = text.substr(begin, std::min<std::size_t>(end - begin, 300));
      if (story.size() > 50) stories_.push_back(tokenizer->encode(story, true));
      begin = end + kEnd.size();
    }
  }

  std::unique_ptr<LanguageModel> target_;
  ModelDrafter drafter_;
  std::vector<std::vector<TokenId>> stories_;
  std::size_t next_story_ = 0;
};

// The transform of every committed token, by its place in its round. Rejects uniformity at 1e-6 and
// independence at five standard deviations. With some 200 comparisons a correct build fails by an
// unlucky seed with probability 2e-4.
class IntegralTransform {
 public:
  explicit IntegralTransform(std::uint64_t seed) : noise_(seed) {}

  void add(Stream& stream, const Committed& committed) {
    const Distribution& target_prob = stream.views.target(committed.logits_node);
    double below = 0;
    for (std::size_t index = 0; target_prob.ids[index] < committed.id; ++index) {
      below += target_prob.probs[index];
    }
    const double u = below + uniform_(noise_) * target_prob.prob(committed.id);
    by_depth_[stream.tree.node(committed.logits_node).depth].push_back(u);
    all_.push_back(u);
    const auto [before, is_first] = last_.try_emplace(stream.id, u);
    if (!is_first) neighbours_.add(before->second, u);
    before->second = u;
  }

  std::size_t n_tokens() const { return all_.size(); }
  int n_depths() const { return static_cast<int>(by_depth_.size()); }

  void expect_uniform_and_independent() {
    constexpr double kLevel = 1e-6;
    constexpr double kFiveSigma = 5;  // two-sided tail 6e-7
    for (auto& [depth, values] : by_depth_) {
      const double statistic = ks_uniform(values);
      EXPECT_GT(ks_tail(statistic), kLevel)
          << "depth " << depth << ": " << values.size() << " tokens, statistic " << statistic;
    }
    const double statistic = ks_uniform(all_);
    EXPECT_GT(ks_tail(statistic), kLevel) << all_.size() << " tokens, statistic " << statistic;
    EXPECT_LT(std::abs(neighbours_.z()), kFiveSigma);
    ::testing::Test::RecordProperty("tokens", static_cast<int>(all_.size()));
    ::testing::Test::RecordProperty("ks", std::to_string(statistic));
  }

 private:
  std::mt19937_64 noise_;
  std::uniform_real_distribution<double> uniform_{0, 1};
  std::map<int, std::vector<double>> by_depth_;  // place of the token in its round -> U
  std::vector<double> all_;
  Correlation neighbours_;
  std::map<SequenceId, double> last_;
};

// Continues beginnings of stories by 96 tokens each, eight at a time so that ragged batches occur,
// too, until `enough` returns true.
template <class Commit, class Enough>
void continue_stories(RealPair& pair, Decoder& decoder, const SamplingParams& sampling,
                      Commit&& commit, Enough&& enough) {
  constexpr std::size_t kStreams = 8;
  constexpr std::int64_t kTextTokens = 96;
  const CommitFunction each = commit;
  const Transform transform(sampling, pair.target().config().vocabulary_size);
  std::uint64_t seed = 1;
  while (!enough()) {
    std::deque<CounterChance> chances;
    std::deque<Stream> texts;
    std::vector<Stream*> active;
    for (std::size_t index = 0; index < kStreams; ++index) {
      chances.emplace_back(seed);
      texts.emplace_back(static_cast<SequenceId>(seed++), pair.next_prompt(), transform,
                         chances.back());
      texts.back().max_total = texts.back().n_prompt + kTextTokens;
      decoder.begin(texts.back());
      active.push_back(&texts.back());
    }
    while (!active.empty()) {
      decoder.round(active, each);
      std::erase_if(active, [](const Stream* stream) { return stream->finished; });
    }
    for (Stream& text : texts) decoder.end(text);
  }
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_REAL_PAIR_H_
