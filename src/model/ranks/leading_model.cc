// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/leading_model.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "model/ranks/rank_commands.h"
#include "outrider/error.h"

namespace outrider {

struct LeadingModel::Commands {
  CommandWriter writer;
  SequenceNumber next_number = 0;
};

// A sequence whose keys and values are split over all ranks; rank 0's part is here.
//
// Memory for a command is allocated before anything changes here: if there is too little, all ranks
// are unchanged.
class LeadingModel::OnAllRanks final : public Sequence {
 public:
  OnAllRanks(std::unique_ptr<Sequence> part, SequenceNumber number,
             std::shared_ptr<Commands> commands)
      : part_(std::move(part)), number_(number), commands_(std::move(commands)) {
    commands_->writer.keep_room(kClosing);
  }
  ~OnAllRanks() override {
    CommandWriter& writer = commands_->writer;
    writer.drop_room(kClosing);
    writer.put(RankCommand::close);
    writer.put_number(number_);
  }

  int n_kept() const override { return part_->n_kept(); }
  int n_pending() const override { return part_->n_pending(); }
  void keep(std::span<const int> path) override {
    CommandWriter& writer = commands_->writer;
    writer.make_room(kNamed + CommandWriter::words_of(path.size()));
    part_->keep(path);
    writer.put(RankCommand::keep);
    writer.put_number(number_);
    writer.put_ints(path);
  }
  int rewind(int n_tokens) override {
    CommandWriter& writer = commands_->writer;
    writer.make_room(kNamed + CommandWriter::kInt);
    const int n_left = part_->rewind(n_tokens);
    writer.put(RankCommand::rewind);
    writer.put_number(number_);
    writer.put_int(n_tokens);
    return n_left;
  }
  std::unique_ptr<Sequence> fork() const override {
    CommandWriter& writer = commands_->writer;
    writer.make_room(kNamed + CommandWriter::kNumber + kClosing);
    auto fork = std::make_unique<OnAllRanks>(part_->fork(), commands_->next_number, commands_);
    ++commands_->next_number;
    writer.put(RankCommand::fork);
    writer.put_number(number_);
    writer.put_number(fork->number_);
    return fork;
  }

  // Words of a command with the number of one sequence, and of a sequence's last command.
  static constexpr std::size_t kNamed = CommandWriter::kInt + CommandWriter::kNumber;
  static constexpr std::size_t kClosing = kNamed;

  Sequence* part() const { return part_.get(); }
  SequenceNumber number() const { return number_; }
  // Null for sequences of another model.
  static const OnAllRanks* of(const Sequence* sequence, const Commands& commands) {
    const auto* its = dynamic_cast<const OnAllRanks*>(sequence);
    return its != nullptr && its->commands_.get() == &commands ? its : nullptr;
  }

 private:
  std::unique_ptr<Sequence> part_;
  SequenceNumber number_;
  std::shared_ptr<Commands> commands_;
};

LeadingModel::LeadingModel(std::unique_ptr<DecoderModel> part, std::shared_ptr<Communicator> ranks)
    : part_(std::move(part)),
      ranks_(std::move(ranks)),
      commands_(std::make_shared<Commands>()),
      heartbeat_(std::make_unique<Heartbeat>(ranks_)) {}

LeadingModel::~LeadingModel() {
  heartbeat_.reset();
  if (!ranks_->failure().empty()) return;
  try {
    commands_->writer.put(RankCommand::end);
    commands_->writer.send(*ranks_);
  } catch (const std::exception& error) {
    // The others hear of it, and what was being sent is let go of before its memory is.
    ranks_->give_up(error.what());
  }
}

std::unique_ptr<Sequence> LeadingModel::open(const Prompt& prompt) {
  CommandWriter& writer = commands_->writer;
  writer.make_room(OnAllRanks::kNamed + 2 * CommandWriter::kInt + OnAllRanks::kClosing);
  auto sequence =
      std::make_unique<OnAllRanks>(part_->open(prompt), commands_->next_number, commands_);
  ++commands_->next_number;
  writer.put(RankCommand::open);
  writer.put_number(sequence->number());
  writer.put_int(prompt.n_reserved);
  writer.put_int(prompt.n_tokens);
  return sequence;
}

int LeadingModel::context_of(const Sequence& sequence) const {
  const OnAllRanks* const its = OnAllRanks::of(&sequence, *commands_);
  return its == nullptr ? config().context_length : part_->context_of(*its->part());
}

bool LeadingModel::fits(std::span<const SequenceGrowth> growths) const {
  growths_.clear();
  for (const SequenceGrowth& growth : growths) {
    const OnAllRanks* const its = OnAllRanks::of(growth.sequence, *commands_);
    if (its != nullptr) growths_.push_back({its->part(), growth.n_tokens});
  }
  return part_->fits(growths_);
}

std::unique_ptr<Sequence> LeadingModel::fork_without(const Sequence& whole,
                                                     std::span<const int> skip_layers) const {
  const OnAllRanks* const its = OnAllRanks::of(&whole, *commands_);
  if (its == nullptr) return nullptr;
  CommandWriter& writer = commands_->writer;
  writer.make_room(OnAllRanks::kNamed + CommandWriter::kNumber +
                   CommandWriter::words_of(skip_layers.size()) + OnAllRanks::kClosing);
  auto part = part_->fork_without(*its->part(), skip_layers);
  if (part == nullptr) return nullptr;
  auto fork = std::make_unique<OnAllRanks>(std::move(part), commands_->next_number, commands_);
  ++commands_->next_number;
  writer.put(RankCommand::fork_without);
  writer.put_number(its->number());
  writer.put_number(fork->number());
  writer.put_ints(skip_layers);
  return fork;
}

void LeadingModel::save(const Sequence&, const ByteSink&) const {
  throw Error("save sequence", "model", "one in one process",
              fmt::format("one that {} ranks hold together", ranks_->n_ranks()));
}

std::unique_ptr<Sequence> LeadingModel::restore(int, const ByteSource&) {
  throw Error("load sequence", "model", "one in one process",
              fmt::format("one that {} ranks hold together", ranks_->n_ranks()));
}

void LeadingModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                           ForwardOutput& output) {
  blocks_.assign(blocks.begin(), blocks.end());
  numbers_.clear();
  for (TokenBlock& block : blocks_) {
    const OnAllRanks* const its = OnAllRanks::of(block.sequence, *commands_);
    // The local part refuses sequences of other models.
    if (its != nullptr) block.sequence = its->part();
    numbers_.push_back(its == nullptr ? -1 : its->number());
  }
  part_->prepare(blocks_, request);
  float* const logits = part_->resize_output(request, output);
  const auto turn = heartbeat_->take_turn();
  commands_->writer.put_pass(blocks_, numbers_, request);
  try {
    commands_->writer.send(*ranks_);
    part_->run(request, logits, output);
  } catch (const std::exception& error) {
    output.clear();
    ranks_->give_up(error.what());
    throw;
  }
}

void LeadingModel::project(std::span<const float> features, ForwardOutput& output) {
  // As in a pass: refusals and allocations come before the others are told.
  float* const logits = part_->lay_out_projection(features, output);
  if (features.empty()) return;
  const auto turn = heartbeat_->take_turn();
  commands_->writer.put_project(features);
  try {
    commands_->writer.send(*ranks_);
    part_->run_projection(logits);
  } catch (const std::exception& error) {
    output.clear();
    ranks_->give_up(error.what());
    throw;
  }
}

}  // namespace outrider
