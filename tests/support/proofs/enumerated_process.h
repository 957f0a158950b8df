// SPDX-License-Identifier: Apache-2.0
// The distribution of the first tokens that speculative decoding emits, and the distribution they
// should have. Both are computed by enumerating every random decision of drafter and verifier.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATED_PROCESS_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATED_PROCESS_H_

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "speculate/decoder.h"
#include "speculate/tree_shapes/fixed_shape.h"
#include "tests/support/models/table_model.h"
#include "tests/support/proofs/enumerating_chance.h"

namespace outrider::test {

using TextDistribution = std::map<std::vector<TokenId>, double>;

struct Trial {
  PrefixModel* target = nullptr;
  Drafter* drafter = nullptr;
  const Acceptance* acceptance = nullptr;
  int draft_length = 1;                              // of a chain
  std::shared_ptr<const TreeShape> shape = nullptr;  // if given, instead of that chain
  const StopRule* stop = nullptr;
  SamplingParams sampling = {};
  std::vector<TokenId> prompt = {0};
  std::vector<TokenId> encoder_tokens = {};  // for an encoder-decoder
  int n_tokens = 3;                          // emitted, over as many rounds as needed
  // Tokens after the first round come from the target's process. This allows the enumeration of
  // larger trees. It is sufficient, since an exact round before an exact process gives an exact
  // text; only the independence of rounds is not covered.
  bool first_round_only = false;
  // For texts with a grammar: a matcher for a new text; and, computed without the matcher, the
  // masked logits after some emitted tokens.
  std::function<std::shared_ptr<GrammarMatcher>()> matcher = {};
  std::function<void(const std::vector<TokenId>& emitted, std::vector<float>& logits)> mask = {};
  // The same for texts with a mask set by the program.
  std::function<std::shared_ptr<TextMasks>()> masks = {};
};

struct Enumerated {
  TextDistribution dist;
  double weight = 0;                   // total: 1 if every outcome was enumerated
  double accepted_in_first_round = 0;  // expectation
  long n_paths = 0;
};

// Adds the target's process under the same transform after the tokens already emitted, which have
// probability `prob`; by the chain rule alone.
inline void add_target_process(const Trial& trial, const std::vector<TokenId>& emitted, double prob,
                               TextDistribution& dist) {
  if (static_cast<int>(emitted.size()) == trial.n_tokens) {
    dist[emitted] += prob;
    return;
  }
  std::vector<TokenId> prefix = trial.prompt;
  prefix.insert(prefix.end(), emitted.begin(), emitted.end());
  TokenHistory history;
  history.add_prompt(trial.prompt);
  for (const TokenId token : emitted) history.add_generated(token);
  const Transform transform(trial.sampling, trial.target->config().vocabulary_size);
  std::vector<float> logits = trial.target->logits(prefix);
  transform.penalise(logits, history, {});
  if (trial.mask) trial.mask(emitted, logits);
  Distribution next;
  transform.distribution(logits, next);
  for (std::size_t index = 0; index < next.ids.size(); ++index) {
    std::vector<TokenId> longer = emitted;
    longer.push_back(next.ids[index]);
    add_target_process(trial, longer, prob * next.probs[index], dist);
  }
}

inline TextDistribution target_distribution(const Trial& trial) {
  TextDistribution dist;
  add_target_process(trial, {}, 1.0, dist);
  return dist;
}

// Runs the production loop (Decoder) with the drafter and the acceptance under test.
inline Enumerated enumerate(const Trial& trial) {
  Enumerated result;
  EnumeratingChance chance;
  Decoder decoder(*trial.target, trial.drafter, *trial.acceptance,
                  trial.shape ? trial.shape : chain_shape(trial.draft_length), trial.stop);
  chance.for_each_path([&] {
    Stream stream(0, trial.prompt,
                  Transform(trial.sampling, trial.target->config().vocabulary_size), chance);
    stream.encoder_tokens = trial.encoder_tokens;
    stream.max_total = stream.n_prompt + trial.n_tokens;
    if (trial.matcher) stream.history.constrain(trial.matcher());
    if (trial.masks) stream.history.mask_by(trial.masks());
    decoder.begin(stream);
    Stream* const streams[] = {&stream};
    const CommitFunction go_on = [](Stream&, const Committed&) { return false; };
    const auto round = [&] {
      if (trial.masks) stream.history.masks().settle(stream.history.generated());
      decoder.round(streams, go_on);
    };
    round();
    const auto accepted = static_cast<double>(stream.verdict.path.size());
    while (!stream.finished && !trial.first_round_only) round();
    decoder.end(stream);
    const std::vector<TokenId> emitted(stream.tokens.begin() + stream.n_prompt,
                                       stream.tokens.end());
    add_target_process(trial, emitted, chance.weight(), result.dist);
    result.weight += chance.weight();
    result.accepted_in_first_round += chance.weight() * accepted;
    ++result.n_paths;
  });
  return result;
}

// The largest difference of probability over the outcomes of both distributions.
inline double distance(const TextDistribution& a, const TextDistribution& b) {
  double largest = 0;
  const auto compare = [&](const TextDistribution& one, const TextDistribution& other) {
    for (const auto& [tokens, prob] : one) {
      const auto at = other.find(tokens);
      const double difference = std::abs(prob - (at == other.end() ? 0.0 : at->second));
      largest = std::isnan(difference) ? 1.0 : std::max(largest, difference);
    }
  };
  compare(a, b);
  compare(b, a);
  return largest;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_ENUMERATED_PROCESS_H_
