#include "speculate/drafters/ngram_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "outrider/error.h"
#include "speculate/rated_chain.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

void NgramDrafter::begin(const Context& context) {
  texts_.insert_or_assign(context.id, SuffixAutomaton(options_.longest));
}

void NgramDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    const std::span<const TokenId> tokens = job.context->tokens;
    SuffixAutomaton& index = texts_.at(job.context->id);
    for (const TokenId token : tokens.subspan(static_cast<std::size_t>(index.n_tokens()))) {
      index.append(token);
    }
    int state = index.suffix().state;
    while (state != SuffixAutomaton::kRoot && index.state(state).previous_end < 0) {
      state = index.state(state).link;
    }
    // A state whose longest string is longer than `longest` was matched by that many tokens of it.
    const SuffixAutomaton::State& found = index.state(state);
    if (std::min(found.length, options_.longest) < options_.shortest) continue;
    const bool first = options_.occurrence == Occurrence::first;
    auto source = static_cast<std::size_t>(first ? found.first_end : found.previous_end) + 1;
    int length = std::min({options_.length, job.budget.depth, job.budget.n_nodes});
    if (first) length = std::min(length, static_cast<int>(tokens.size() - source));
    RatedChain chain(job.worth, std::min(found.length, options_.longest));
    for (int node = 0; node < length; ++node, ++source) {
      const TokenId token =
          source < tokens.size()
              ? tokens[source]
              : job.tree->node(static_cast<int>(source - tokens.size()) + 1).token;
      if (!chain.goes_on(node, token)) break;
      job.tree->add_child(node, token, kPointMass);
    }
  }
}

void NgramDrafter::rewind(const Context& context, std::size_t n_common) {
  if (static_cast<std::size_t>(texts_.at(context.id).n_tokens()) > n_common) begin(context);
}

void NgramDrafter::end(SequenceId id) { texts_.erase(id); }

DrafterPlan read_ngram_drafter(const Spec& spec) {
  // An n-gram that long has one continuation in any text that is not made of copies.
  constexpr int kLongest = 64;
  spec.require_no_value();
  NgramDrafter::Options options;
  const auto shortest = spec.integer("min", 1, kLongest);
  const auto longest = spec.integer("max", 1, kLongest);
  options.shortest = shortest.value_or(std::min(options.shortest, longest.value_or(kLongest)));
  options.longest = longest.value_or(std::max(options.longest, options.shortest));
  if (options.shortest > options.longest) {
    throw UsageError("read drafter", "ngram", fmt::format("min of at most max={}", options.longest),
                     fmt::format("min={}", options.shortest));
  }
  options.length = spec.integer("length", 1, kMostDraftNodes).value_or(options.length);
  if (spec.choice("match", {"latest", "first"}) == "first") {
    options.occurrence = NgramDrafter::Occurrence::first;
  }
  return {.traits = {},
          .shape = chain_shape(options.length),
          .make = [options](const DrafterMaterials&) {
            return std::make_unique<NgramDrafter>(options);
          }};
}

}  // namespace outrider
