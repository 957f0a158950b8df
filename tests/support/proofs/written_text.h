// SPDX-License-Identifier: Apache-2.0
// A whole text written by the decoder's loop with a pair of tables.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_WRITTEN_TEXT_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_WRITTEN_TEXT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "sampling/counter_chance.h"
#include "speculate/decoder.h"
#include "tests/support/proofs/rule_pair.h"

namespace outrider::test {

struct WrittenText {
  std::vector<TokenId> tokens;  // the prompt's first
  RuleCost cost;
  std::int64_t target_passes = 0;
  // Equal draw for draw; the rule's cost is not compared.
  bool operator==(const WrittenText& other) const {
    return tokens == other.tokens && target_passes == other.target_passes;
  }
};

// Writes forty tokens after the prompt.
inline WrittenText write_text(LanguageModel& target, Drafter& drafter, const Acceptance& acceptance,
                              const std::shared_ptr<const TreeShape>& shape,
                              const SamplingParams& sampling, const std::vector<TokenId>& prompt,
                              std::uint64_t seed) {
  Decoder decoder(target, &drafter, acceptance, shape, nullptr);
  CounterChance chance(seed);
  Stream stream(0, prompt, Transform(sampling, target.config().vocabulary_size), chance);
  stream.max_total = stream.n_prompt + 40;
  decoder.begin(stream);
  Stream* const streams[] = {&stream};
  while (!stream.finished) decoder.round(streams, [](Stream&, const Committed&) { return false; });
  decoder.end(stream);
  return {.tokens = stream.tokens,
          .cost = stream.counts.rule_cost,
          .target_passes = stream.counts.target_passes};
}

inline WrittenText write_text(RulePair& pair, const Acceptance& acceptance,
                              const std::shared_ptr<const TreeShape>& shape,
                              const SamplingParams& sampling, const std::vector<TokenId>& prompt,
                              std::uint64_t seed) {
  return write_text(pair.target, pair.drafter, acceptance, shape, sampling, prompt, seed);
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_WRITTEN_TEXT_H_
