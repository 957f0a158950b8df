// SPDX-License-Identifier: Apache-2.0
// A random test of drafters. It runs several texts at a time, accepts any part of any draft and
// continues with any token. Every draft is compared with that of a fresh drafter.
#ifndef OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WALK_H_
#define OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WALK_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "sampling/counter_chance.h"
#include "sampling/transform.h"
#include "speculate/acceptances/acceptance.h"
#include "speculate/decoder.h"
#include "speculate/drafter.h"
#include "speculate/tree_shapes/tree_shape.h"
#include "tests/support/proofs/checked_drafter.h"
#include "tests/support/proofs/drafter_worlds.h"

namespace outrider::test {

// Accepts a random path, half of the time to a leaf, and a random next token. Sometimes requests
// the drafter's distribution at the end of the path. Depends only on its seed, the text's length
// and the tree.
class RandomVerdicts final : public Acceptance {
 public:
  RandomVerdicts(int vocabulary_size, bool asks_at_leaves)
      : vocabulary_size_(vocabulary_size), asks_at_leaves_(asks_at_leaves) {}
  std::string_view name() const override { return "random"; }
  RuleNeeds needs() const override { return {.leaf_draft = asks_at_leaves_}; }
  void verify(const DraftTree& tree, NodeViews& views, Chance& chance,
              Verdict& verdict) const override {
    const auto below = [&](int n, int node) {
      std::vector<double> probs(static_cast<std::size_t>(n), 1.0 / n);
      return chance.categorical(Distribution::dense(probs),
                                {tree.n_committed(), node, Purpose::accept});
    };
    verdict.path.clear();
    int node = 0;
    for (;;) {
      std::vector<int> children;
      for (int child = tree.next_child(node, node); child >= 0;
           child = tree.next_child(node, child)) {
        children.push_back(child);
      }
      const int choice = below(static_cast<int>(children.size()) + 1, 2 * node);
      // The first child is twice as likely as any other. Otherwise drafts of index drafters, mostly
      // chains, would be cut short too often.
      if (children.empty() || (choice == 0 && below(2, 2 * node + 1) == 0)) break;
      node = children[static_cast<std::size_t>(std::max(choice - 1, 0))];
      verdict.path.push_back(node);
    }
    if (asks_at_leaves_ && below(2, 1000 + node) == 0) (void)views.draft(node);
    // The target's token, often enough that texts repeat themselves, or any other token.
    verdict.next = below(8, 2000 + node) > 0 ? views.target(node).argmax()
                                             : below(vocabulary_size_, 3000 + node);
    verdict.corrected = !views.is_leaf(node);
    verdict.next_prob = Distribution::point_mass(verdict.next);
    verdict.costs.assign(verdict.path.size() + 1, {});
  }

 private:
  int vocabulary_size_;
  bool asks_at_leaves_;
};

// Compares all parts of two drafts that verification reads. Empty: no difference.
inline std::string difference(const DraftTree& a, const DraftTree& b) {
  if (a.n_nodes() != b.n_nodes()) {
    return std::to_string(a.n_nodes()) + " nodes, from scratch " + std::to_string(b.n_nodes());
  }
  const auto same_distribution = [&](int of_a, int of_b) {
    if (of_a < 0 || of_b < 0) return of_a == of_b;
    return a.distribution(of_a).ids == b.distribution(of_b).ids &&
           a.distribution(of_a).probs == b.distribution(of_b).probs;
  };
  for (int node = 0; node < a.n_nodes(); ++node) {
    const DraftNode& x = a.node(node);
    const DraftNode& y = b.node(node);
    if (x.token != y.token || x.parent != y.parent || x.replacement != y.replacement ||
        !same_distribution(x.proposal, y.proposal) ||
        !same_distribution(x.draft_prob, y.draft_prob)) {
      return "another node " + std::to_string(node);
    }
  }
  return {};
}

using MakeDrafter = std::function<std::unique_ptr<Drafter>(const World&)>;

struct Walked {
  std::string difference;  // the first one found
  std::string violation;   // CheckedDrafter's
  int n_drafts = 0;        // that were not empty
  std::int64_t n_accepted = 0;
};

// Runs three texts at a time that begin and end at random. Every draft is compared with that of a
// new drafter that gets the text as its prompt. For drafters that remember more than the text, the
// other drafter has been given the same rounds and no other text.
inline Walked walk(const MakeDrafter& make, const std::shared_ptr<const TreeShape>& shape,
                   const SamplingParams& sampling, bool context_determined, std::uint32_t seed) {
  World world = stored_world(seed);
  const auto drafter = make(world);
  CheckedDrafter checked(*drafter, world.vocabulary_size());
  const RandomVerdicts verdicts(world.vocabulary_size(), drafter->traits().has_draft_prob);
  Decoder decoder(*world.target, &checked, verdicts, shape, nullptr);
  const Transform transform(DrafterFiles::get().few_characters(sampling), world.vocabulary_size());
  const CommitFunction go_on = [](Stream&, const Committed&) { return false; };
  std::mt19937 random(seed);
  Walked walked;

  // A text, and for drafters with a memory the drafter that gets only this text.
  struct Text {
    Text(SequenceId id, const World& world, const Transform& transform, std::uint32_t text_seed)
        : chance(text_seed), stream(id, world.prompt, transform, chance) {
      stream.max_total = 1000;
    }
    CounterChance chance;
    Stream stream;
    std::unique_ptr<Drafter> alone;
    std::unique_ptr<Decoder> alone_decoder;
    std::unique_ptr<Stream> alone_stream;
  };
  std::deque<std::unique_ptr<Text>> texts;
  SequenceId next_id = 0;
  for (int round = 0; round < 40; ++round) {
    while (texts.size() < 3) {
      const auto text_seed = static_cast<std::uint32_t>(random());
      texts.push_back(std::make_unique<Text>(next_id++, world, transform, text_seed));
      Text& text = *texts.back();
      decoder.begin(text.stream);
      if (context_determined) continue;
      text.alone = make(world);
      text.alone_decoder =
          std::make_unique<Decoder>(*world.target, text.alone.get(), verdicts, shape, nullptr);
      text.alone_stream =
          std::make_unique<Stream>(text.stream.id, world.prompt, transform, text.chance);
      text.alone_stream->max_total = text.stream.max_total;
      text.alone_decoder->begin(*text.alone_stream);
    }
    std::vector<Stream*> streams;
    streams.reserve(texts.size());
    for (const auto& text : texts) streams.push_back(&text->stream);
    // Not every text is in every round.
    if (round % 3 == 1) streams.erase(streams.begin() + random() % streams.size());
    // A text that begins with everything committed so far; its one round is compared.
    std::vector<std::unique_ptr<Stream>> fresh;
    for (Stream* stream : streams) {
      const auto text = std::find_if(texts.begin(), texts.end(), [&](const auto& candidate) {
        return &candidate->stream == stream;
      });
      if (!context_determined) {
        Stream* const alone[] = {(*text)->alone_stream.get()};
        (*text)->alone_decoder->round(alone, go_on);
        continue;
      }
      const auto rebuilt = make(world);
      Decoder from_scratch(*world.target, rebuilt.get(), verdicts, shape, nullptr);
      fresh.push_back(
          std::make_unique<Stream>(stream->id, stream->tokens, transform, *stream->chance));
      fresh.back()->history = stream->history;
      fresh.back()->max_total = stream->max_total;
      from_scratch.begin(*fresh.back());
      Stream* const one[] = {fresh.back().get()};
      from_scratch.round(one, go_on);
    }
    decoder.round(streams, go_on);
    for (std::size_t index = 0; index < streams.size(); ++index) {
      const Stream* other = context_determined ? fresh[index].get() : nullptr;
      if (other == nullptr) {
        for (const auto& text : texts) {
          if (&text->stream == streams[index]) other = text->alone_stream.get();
        }
      }
      const std::string found = difference(streams[index]->tree, other->tree);
      if (!found.empty() && walked.difference.empty()) {
        walked.difference = "round " + std::to_string(round) + ": " + found;
      }
      walked.n_drafts += streams[index]->tree.n_drafted() > 0 ? 1 : 0;
    }
    if (round % 7 == 6) {
      const auto at = static_cast<std::ptrdiff_t>(random() % texts.size());
      walked.n_accepted += texts[static_cast<std::size_t>(at)]->stream.counts.accepted;
      decoder.end(texts[static_cast<std::size_t>(at)]->stream);
      texts.erase(texts.begin() + at);
    }
  }
  for (const auto& text : texts) walked.n_accepted += text->stream.counts.accepted;
  walked.violation = checked.violation();
  return walked;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_PROOFS_DRAFTER_WALK_H_
