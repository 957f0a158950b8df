// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/lookup/ngram_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>

#include "outrider/error.h"
#include "speculate/drafters/lookup/rated_chain.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {

NgramDrafter::NgramDrafter(const Options& options) : options_(options) {
  if (options_.across > 0) earlier_.emplace(options_.longest, options_.across);
}

void NgramDrafter::begin(const Context& context) {
  texts_.insert_or_assign(context.id,
                          IndexedText{.index = SuffixAutomaton(options_.longest), .tokens = {}});
}

void NgramDrafter::catch_up(IndexedText& text, const Context& context) const {
  const auto n_seen = static_cast<std::size_t>(text.index.n_tokens());
  for (const TokenId token : context.tokens.subspan(n_seen)) {
    text.index.append(token);
    if (earlier_) text.tokens.push_back(token);
  }
}

void NgramDrafter::propose(std::span<DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    IndexedText& text = texts_.at(job.context->id);
    catch_up(text, *job.context);
    const SuffixAutomaton& index = text.index;
    int state = index.suffix().state;
    while (state != SuffixAutomaton::kRoot && index.state(state).previous_end < 0) {
      state = index.state(state).link;
    }
    // A state whose longest string exceeds `longest` was matched by `longest` tokens of it.
    const int length = std::min(index.state(state).length, options_.longest);
    if (length < options_.longest && earlier_ && draft_from_earlier(job)) continue;
    if (length >= options_.shortest) draft_from_text(job, index, state);
  }
}

// Copies what followed the state's strings.
void NgramDrafter::draft_from_text(const DraftJob& job, const SuffixAutomaton& index,
                                   int state) const {
  const std::span<const TokenId> tokens = job.context->tokens;
  const SuffixAutomaton::State& found = index.state(state);
  const bool first = options_.occurrence == Occurrence::first;
  auto source = static_cast<std::size_t>(first ? found.first_end : found.previous_end) + 1;
  int length = std::min({options_.length, job.budget.depth, job.budget.n_nodes});
  if (first) length = std::min(length, static_cast<int>(tokens.size() - source));
  RatedChain chain(job.worth, std::min(found.length, options_.longest));
  for (int node = 0; node < length; ++node, ++source) {
    const TokenId token = source < tokens.size()
                              ? tokens[source]
                              : job.tree->node(static_cast<int>(source - tokens.size()) + 1).token;
    if (!chain.goes_on(node, token)) break;
    job.tree->add_child(node, token, kPointMass);
  }
}

// Drafts what followed the last tokens (drafted ones included) in ended texts. Returns false if
// nothing did.
bool NgramDrafter::draft_from_earlier(const DraftJob& job) {
  const std::span<const TokenId> tokens = job.context->tokens;
  const std::span<const TokenId> last =
      tokens.last(std::min(tokens.size(), static_cast<std::size_t>(options_.longest)));
  end_.assign(last.begin(), last.end());
  const int length = std::min({options_.length, job.budget.depth, job.budget.n_nodes});
  RatedChain chain(job.worth, options_.longest);
  TokenId token = earlier_->after(end_);
  if (token == kNoToken) return false;
  for (int node = 0; node < length && token != kNoToken && chain.goes_on(node, token); ++node) {
    job.tree->add_child(node, token, kPointMass);
    end_.push_back(token);
    token = earlier_->after(end_);
  }
  return true;
}

void NgramDrafter::rewind(const Context& context, std::size_t n_common) {
  if (static_cast<std::size_t>(texts_.at(context.id).index.n_tokens()) > n_common) begin(context);
}

void NgramDrafter::end(SequenceId id) {
  const auto text = texts_.find(id);
  if (text == texts_.end()) return;
  if (earlier_) earlier_->add(text->second.tokens);
  texts_.erase(text);
}

DrafterPlan read_ngram_drafter(const Spec& spec) {
  // An n-gram of this length has a single continuation in any text that is not made of copies.
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
  options.length = spec.integer("length", 1, kMaxDraftNodes).value_or(options.length);
  if (spec.choice("match", {"latest", "first"}) == "first") {
    options.occurrence = NgramDrafter::Occurrence::first;
  }
  options.across = spec.integer("across", 0, NgramDrafter::kMaxPlaces).value_or(options.across);
  return {.traits = {},
          .shape = chain_shape(options.length),
          .make = [options](const DrafterMaterials&) {
            return std::make_unique<NgramDrafter>(options);
          }};
}

}  // namespace outrider
