// SPDX-License-Identifier: Apache-2.0
#include "grammar/parts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "grammar/limits.h"
#include "outrider/error.h"

namespace outrider {
namespace {

ByteSet set_of(ByteRange range) {
  ByteSet set;
  for (std::size_t byte = range.first; byte <= range.last; ++byte) set.set(byte);
  return set;
}

}  // namespace

int GrammarParts::add(Part part) {
  // Each comes from a byte or two of a grammar's text, or from a few bytes of a schema's.
  constexpr std::size_t kMaxParts = 8 * kMaxPositions;
  if (parts_.size() >= kMaxParts) {
    throw Error("read grammar", "size", fmt::format("at most {} parts", kMaxParts), "more");
  }
  parts_.push_back(std::move(part));
  return static_cast<int>(parts_.size()) - 1;
}

int GrammarParts::nothing() { return add({}); }

int GrammarParts::bytes(const ByteSet& set) { return add({.kind = Kind::bytes, .bytes = set}); }

int GrammarParts::text(std::string_view text) {
  std::vector<int> parts;
  parts.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<std::uint8_t>(c);
    parts.push_back(bytes(set_of({byte, byte})));
  }
  return sequence(std::move(parts));
}

int GrammarParts::character(const CodePoints& set) { return alternatives(utf8_sequences(set)); }

// Sequences with equal later bytes are joined.
int GrammarParts::alternatives(std::vector<ByteSequence> sequences) {
  std::vector<int> choices;
  while (!sequences.empty()) {
    const auto goes_on_alike = [&first = sequences.front()](const ByteSequence& other) {
      return std::equal(first.begin() + 1, first.end(), other.begin() + 1, other.end());
    };
    ByteSet heads;
    for (const ByteSequence& sequence : sequences) {
      if (goes_on_alike(sequence)) heads |= set_of(sequence.front());
    }
    std::vector<int> row = {bytes(heads)};
    row.reserve(sequences.front().size());
    for (std::size_t i = 1; i < sequences.front().size(); ++i) {
      row.push_back(bytes(set_of(sequences.front()[i])));
    }
    choices.push_back(sequence(std::move(row)));
    std::vector<ByteSequence> others;
    std::copy_if(sequences.begin(), sequences.end(), std::back_inserter(others),
                 [&](const ByteSequence& sequence) { return !goes_on_alike(sequence); });
    sequences = std::move(others);
  }
  return choice(std::move(choices));
}

int GrammarParts::sequence(std::vector<int> parts) {
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::sequence, .parts = std::move(parts)});
}

int GrammarParts::choice(std::vector<int> parts) {
  if (parts.size() == 1) return parts.front();
  return add({.kind = Kind::choice, .parts = std::move(parts)});
}

int GrammarParts::repeat(int part, int min, int max) {
  return add({.kind = Kind::repetition, .parts = {part}, .min = min, .max = max});
}

int GrammarParts::call(int rule) { return add({.kind = Kind::call, .rule = rule}); }

int GrammarParts::declare(std::string name) {
  if (rules_.size() >= kMaxRules) {
    throw Error("read grammar", "rules", fmt::format("at most {}", kMaxRules), "more");
  }
  rules_.push_back({.name = std::move(name)});
  return static_cast<int>(rules_.size()) - 1;
}

void GrammarParts::define(int rule, int part) {
  rules_[static_cast<std::size_t>(rule)].part = part;
}

int GrammarParts::shared(std::string name, int part) {
  const int rule = declare(std::move(name));
  define(rule, part);
  return call(rule);
}

}  // namespace outrider
