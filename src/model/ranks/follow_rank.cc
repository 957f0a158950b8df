// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <memory>
#include <new>
#include <unordered_map>
#include <vector>

#include "model/ranks/leading_model.h"
#include "model/ranks/rank_commands.h"
#include "outrider/error.h"

namespace outrider {
namespace {

class Follower {
 public:
  Follower(DecoderModel& part, Communicator& ranks) : part_(part), ranks_(ranks) {}

  // Returns false after the last command.
  bool run(CommandReader& reader) {
    switch (reader.command()) {
      case RankCommand::open: {
        const SequenceNumber number = reader.get_number();
        const int n_reserved = reader.get_int();
        const int n_tokens = reader.get_int();
        sequences_[number] = part_.open({.n_reserved = n_reserved, .n_tokens = n_tokens});
        return true;
      }
      case RankCommand::keep: {
        Sequence& sequence = next_sequence(reader);
        sequence.keep(reader.get_ints());
        return true;
      }
      case RankCommand::rewind: {
        Sequence& sequence = next_sequence(reader);
        sequence.rewind(reader.get_int());
        return true;
      }
      case RankCommand::fork: {
        auto fork = next_sequence(reader).fork();
        sequences_[reader.get_number()] = std::move(fork);
        return true;
      }
      case RankCommand::fork_without: {
        const Sequence& whole = next_sequence(reader);
        const SequenceNumber number = reader.get_number();
        sequences_[number] = part_.fork_without(whole, reader.get_ints());
        return true;
      }
      case RankCommand::close:
        sequences_.erase(reader.get_number());
        return true;
      case RankCommand::pass:
        run_pass(reader.get_pass());
        return true;
      case RankCommand::project:
        part_.project_part(reader.get_floats());
        return true;
      case RankCommand::answer:
        ranks_.confirm();
        return true;
      case RankCommand::end:
        return false;
    }
    throw Error("run ranks", "commands of rank 0", "known ones", "an unknown one");
  }

 private:
  Sequence& sequence(SequenceNumber number) {
    const auto its = sequences_.find(number);
    if (its == sequences_.end() || its->second == nullptr) {
      throw Error("run ranks", "commands of rank 0", "sequences that are open", "another one");
    }
    return *its->second;
  }
  Sequence& next_sequence(CommandReader& reader) { return sequence(reader.get_number()); }

  void run_pass(const CommandReader::Pass& pass) {
    blocks_ = pass.blocks;
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      blocks_[i].sequence = &sequence(pass.numbers[i]);
    }
    part_.prepare(blocks_, pass.request);
    part_.run_part();
  }

  DecoderModel& part_;
  Communicator& ranks_;
  std::unordered_map<SequenceNumber, std::unique_ptr<Sequence>> sequences_;
  std::vector<TokenBlock> blocks_;
};

}  // namespace

void follow_rank(DecoderModel& part, Communicator& ranks) {
  Follower follower(part, ranks);
  CommandReader reader;
  try {
    while (true) {
      reader.receive(ranks);
      while (!reader.is_at_end()) {
        if (!follower.run(reader)) return;
      }
    }
  } catch (const std::bad_alloc&) {
    const Error problem("allocate", "memory", "enough for this pass", "not enough");
    ranks.give_up(problem.what());
    throw problem;
  } catch (const std::exception& error) {
    ranks.give_up(error.what());
    throw;
  }
}

}  // namespace outrider
