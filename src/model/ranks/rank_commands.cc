// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/rank_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "outrider/error.h"

namespace outrider {
namespace {

// A message begins with the number of its words. This many words are always sent: enough for a
// decoding step of a few texts. Longer messages take a second one.
constexpr std::size_t kFirstWords = 256;

}  // namespace

CommandWriter::CommandWriter() : frame_(kFirstWords) {}

void CommandWriter::make_room(std::size_t n_words) {
  const std::size_t n_taken = words_.size() + n_kept_;
  if (n_words > kMaxCommandWords - std::min(n_taken, kMaxCommandWords)) {
    throw Error("run ranks", "commands of rank 0",
                fmt::format("a message of at most {} words", kMaxCommandWords),
                fmt::format("one of {} and {} more", n_taken, n_words));
  }
  const std::size_t n_needed = n_taken + n_words;
  if (words_.capacity() < n_needed) words_.reserve(std::max(n_needed, 2 * words_.capacity()));
}

void CommandWriter::keep_room(std::size_t n_words) {
  make_room(n_words);
  n_kept_ += n_words;
}

void CommandWriter::put_number(SequenceNumber number) {
  const auto bits = static_cast<std::uint64_t>(number);
  const std::array words = {static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)),
                            static_cast<std::int32_t>(static_cast<std::uint32_t>(bits >> 32U))};
  static_assert(words.size() == kNumber);
  words_.insert(words_.end(), words.begin(), words.end());
}

void CommandWriter::put_ints(std::span<const int> values) {
  make_room(words_of(values.size()));
  put_int(static_cast<int>(values.size()));
  words_.insert(words_.end(), values.begin(), values.end());
}

void CommandWriter::put_floats(std::span<const float> values) {
  make_room(words_of(values.size()));
  put_int(static_cast<int>(values.size()));
  const std::size_t at = words_.size();
  words_.resize(at + values.size());
  if (!values.empty()) std::memcpy(words_.data() + at, values.data(), values.size_bytes());
}

void CommandWriter::put_pass(std::span<const TokenBlock> blocks,
                             std::span<const SequenceNumber> numbers,
                             const ForwardRequest& request) {
  std::size_t n_words = 3 * kInt + numbers.size() * kNumber + words_of(request.logits.rows.size()) +
                        words_of(request.skip_layers.size());
  for (const TokenBlock& block : blocks) {
    n_words += words_of(block.tokens.size()) + words_of(block.parents.size());
  }
  make_room(n_words);
  put(RankCommand::pass);
  put_int(static_cast<int>(numbers.size()));
  for (const SequenceNumber number : numbers) put_number(number);
  for (const TokenBlock& block : blocks) {
    put_ints(block.tokens);
    put_ints(block.parents);
  }
  put_int(static_cast<int>(request.logits.kind));
  put_ints(request.logits.rows);
  put_ints(request.skip_layers);
}

void CommandWriter::put_project(std::span<const float> features) {
  make_room(kInt + words_of(features.size()));
  put(RankCommand::project);
  put_floats(features);
}

void CommandWriter::send(Communicator& ranks) {
  std::fill(frame_.begin(), frame_.end(), 0);
  frame_.front() = static_cast<std::int32_t>(words_.size());
  const std::size_t n_first = std::min(words_.size(), kFirstWords - 1);
  std::copy_n(words_.begin(), n_first, frame_.begin() + 1);
  ranks.broadcast(std::as_writable_bytes(std::span(frame_)));
  if (n_first < words_.size()) {
    ranks.broadcast(std::as_writable_bytes(std::span(words_).subspan(n_first)));
  }
  words_.clear();
}

void CommandReader::receive(Communicator& ranks) {
  words_.resize(std::max(words_.size(), kFirstWords));
  ranks.broadcast(std::as_writable_bytes(std::span(words_).first(kFirstWords)));
  const std::int32_t length = words_.front();
  if (length < 0 || static_cast<std::size_t>(length) > kMaxCommandWords) {
    throw Error("run ranks", "commands of rank 0",
                fmt::format("a message of at most {} words", kMaxCommandWords),
                fmt::format("one of {}", length));
  }
  const auto n = static_cast<std::size_t>(length);
  words_.resize(1 + n + kFirstWords);
  if (1 + n > kFirstWords) {
    ranks.broadcast(
        std::as_writable_bytes(std::span(words_).subspan(kFirstWords, 1 + n - kFirstWords)));
  }
  words_.resize(1 + n);
  at_ = 1;
}

std::span<const std::int32_t> CommandReader::take(std::size_t n) {
  if (n > words_.size() - at_) {
    throw Error("run ranks", "commands of rank 0", "whole ones", "a part of one");
  }
  at_ += n;
  return std::span(words_).subspan(at_ - n, n);
}

int CommandReader::get_int() { return take(1).front(); }

SequenceNumber CommandReader::get_number() {
  const std::span<const std::int32_t> words = take(CommandWriter::kNumber);
  const std::uint64_t low = static_cast<std::uint32_t>(words[0]);
  const std::uint64_t high = static_cast<std::uint32_t>(words[1]);
  return static_cast<SequenceNumber>(high << 32U | low);
}

std::span<const int> CommandReader::get_ints() {
  const int n = get_int();
  return take(static_cast<std::size_t>(n));
}

std::span<const float> CommandReader::get_floats() {
  const std::span<const std::int32_t> words = get_ints();
  floats_.resize(words.size());
  if (!words.empty()) std::memcpy(floats_.data(), words.data(), words.size_bytes());
  return floats_;
}

const CommandReader::Pass& CommandReader::get_pass() {
  const int n_blocks = get_int();
  pass_.numbers.clear();
  for (int i = 0; i < n_blocks; ++i) pass_.numbers.push_back(get_number());
  pass_.blocks.clear();
  for (int i = 0; i < n_blocks; ++i) {
    const std::span<const int> tokens = get_ints();
    const std::span<const int> parents = get_ints();
    pass_.blocks.push_back({.sequence = nullptr, .tokens = tokens, .parents = parents});
  }
  pass_.request = {};
  pass_.request.logits.kind = static_cast<RowSet::Kind>(get_int());
  pass_.request.logits.rows = get_ints();
  pass_.request.skip_layers = get_ints();
  return pass_;
}

}  // namespace outrider
