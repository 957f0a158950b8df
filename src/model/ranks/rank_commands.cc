#include "model/ranks/rank_commands.h"

#include <algorithm>
#include <cstring>

#include "outrider/error.h"

namespace outrider {
namespace {

// A message begins with the number of its words. This many words are always sent: enough for a
// decoding step of a few texts. Longer messages take a second one.
constexpr std::size_t kFirstWords = 256;

}  // namespace

void CommandWriter::put_ints(std::span<const int> values) {
  put_int(static_cast<int>(values.size()));
  words_.insert(words_.end(), values.begin(), values.end());
}

void CommandWriter::put_floats(std::span<const float> values) {
  put_int(static_cast<int>(values.size()));
  const std::size_t at = words_.size();
  words_.resize(at + values.size());
  if (!values.empty()) std::memcpy(words_.data() + at, values.data(), values.size_bytes());
}

void CommandWriter::put_pass(std::span<const TokenBlock> blocks, std::span<const int> numbers,
                             const ForwardRequest& request) {
  put(RankCommand::pass);
  put_ints(numbers);
  for (const TokenBlock& block : blocks) {
    put_ints(block.tokens);
    put_ints(block.parents);
  }
  put_int(static_cast<int>(request.logits.kind));
  put_ints(request.logits.rows);
  put_ints(request.skip_layers);
}

void CommandWriter::send(Communicator& ranks) {
  frame_.assign(kFirstWords, 0);
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
  const auto n = static_cast<std::size_t>(words_.front());
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
  const std::span<const int> numbers = get_ints();
  pass_.numbers.assign(numbers.begin(), numbers.end());
  pass_.blocks.clear();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
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
