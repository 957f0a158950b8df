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

// Rank 0 numbers sequences and never reuses a number.
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

class CommandWriter {
 public:
  void put(RankCommand command) { put_int(static_cast<int>(command)); }
  void put_int(int value) { words_.push_back(value); }
  void put_ints(std::span<const int> values);  // preceded by their number
  void put_floats(std::span<const float> values);
  // A pass over blocks whose sequences have these numbers.
  void put_pass(std::span<const TokenBlock> blocks, std::span<const int> numbers,
                const ForwardRequest& request);

  // Called by rank 0: sends what was added since the last call. Throws as Communicator does.
  void send(Communicator& ranks);

 private:
  std::vector<std::int32_t> words_;
  std::vector<std::int32_t> frame_;
};

// Reads received commands one by one.
class CommandReader {
 public:
  // Waits for the next message, which comes in time even if there is no work (heartbeat.h). Throws
  // as Communicator does.
  void receive(Communicator& ranks);
  bool is_at_end() const { return at_ == words_.size(); }

  RankCommand command() { return static_cast<RankCommand>(get_int()); }
  int get_int();
  // Valid until the next receive().
  std::span<const int> get_ints();
  std::span<const float> get_floats();
  struct Pass {
    std::vector<int> numbers;        // of the blocks' sequences
    std::vector<TokenBlock> blocks;  // their sequences are not set
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
