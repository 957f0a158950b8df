// SPDX-License-Identifier: Apache-2.0
// Rank 0's commands to the others: a stream of 32-bit words, sent before each pass. Commands
// without a reply (open, keep, rewind, fork, close) are sent with the next pass, so a decode round
// sends one message.
#ifndef OUTRIDER_MODEL_RANKS_RANK_COMMANDS_H_
#define OUTRIDER_MODEL_RANKS_RANK_COMMANDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/language_model.h"
#include "model/ranks/communicator.h"

namespace outrider {

// Rank 0 numbers sequences and never reuses a number: 64 bits, which no server uses up.
using SequenceNumber = std::int64_t;

// The limit of one message, 64 MiB: several times the widest pass and the widest features. A longer
// message is refused by its sender, and a longer length is refused by its receiver.
inline constexpr std::size_t kMaxCommandWords = std::size_t{1} << 24;

enum class RankCommand : std::int32_t {
  open,          // number, Prompt::n_reserved, Prompt::n_tokens
  keep,          // number, path
  rewind,        // number, tokens
  fork,          // number, the new one's number
  fork_without,  // number, the new one's number, layers
  close,         // number
  pass,          // blocks, rows with logits, layers to skip: run a pass
  project,       // features: run the output matrix's product
  answer,        // confirm that this rank is alive
  end,           // there are no more commands
};

// Not thread-safe. A call that throws has added nothing, so that no partial command is ever sent.
class CommandWriter {
 public:
  CommandWriter();

  // Reserves memory for n_words further words, which are then added without an allocation. Throws
  // std::bad_alloc, and Error if the message would be longer than kMaxCommandWords.
  void make_room(std::size_t n_words);
  // Keeps memory for words that are added when nothing may be allocated or thrown any more (at a
  // sequence's end); make_room() leaves it free. drop_room() gives n_words of it back, before they
  // are added or unused.
  void keep_room(std::size_t n_words);
  void drop_room(std::size_t n_words) noexcept { n_kept_ -= n_words; }

  // Words of the added values: of a command or an int; of a sequence's number; of a list.
  static constexpr std::size_t kInt = 1;
  static constexpr std::size_t kNumber = 2;
  static std::size_t words_of(std::size_t n_values) { return kInt + n_values; }

  void put(RankCommand command) { put_int(static_cast<int>(command)); }
  void put_int(int value) { words_.push_back(value); }
  void put_number(SequenceNumber number);
  void put_ints(std::span<const int> values);  // preceded by their count
  void put_floats(std::span<const float> values);
  // A pass over blocks whose sequences have these numbers.
  void put_pass(std::span<const TokenBlock> blocks, std::span<const SequenceNumber> numbers,
                const ForwardRequest& request);
  // The product with the output matrix.
  void put_project(std::span<const float> features);

  // Called by rank 0: sends what was added since the last call. Allocates nothing. Throws as
  // Communicator does.
  void send(Communicator& ranks);

 private:
  std::vector<std::int32_t> words_;
  std::size_t n_kept_ = 0;  // words of keep_room()
  std::vector<std::int32_t> frame_;
};

// Reads received commands one by one.
class CommandReader {
 public:
  // Waits for the next message, which comes in time even if there is no work (heartbeat.h). Throws
  // as Communicator does, and Error if the received length is impossible.
  void receive(Communicator& ranks);
  bool is_at_end() const { return at_ == words_.size(); }

  RankCommand command() { return static_cast<RankCommand>(get_int()); }
  int get_int();
  SequenceNumber get_number();
  // Valid until the next receive().
  std::span<const int> get_ints();
  std::span<const float> get_floats();
  struct Pass {
    std::vector<SequenceNumber> numbers;  // of the blocks' sequences
    std::vector<TokenBlock> blocks;       // their sequences are not set
    ForwardRequest request;
  };
  const Pass& get_pass();

 private:
  std::span<const std::int32_t> take(std::size_t n);

  std::vector<std::int32_t> words_;
  std::size_t at_ = 0;
  std::vector<float> floats_;
  Pass pass_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_RANK_COMMANDS_H_
