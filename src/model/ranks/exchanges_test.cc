// SPDX-License-Identifier: Apache-2.0
// What passes of a model on two ranks send, and to whom.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "model/load_model.h"
#include "model/ranks/communicator.h"
#include "model/ranks/forwarding_transport.h"
#include "model/ranks/in_process_ranks.h"
#include "outrider/error.h"
#include "tests/support/models/run_model.h"
#include "tests/support/models/tiny_model.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

using Peers = Exchange::Peers;

struct Sent {
  Peers to = Peers::none;
  std::size_t n_bytes = 0;  // to each of them
  Peers from = Peers::none;
};

// Records every exchange.
class NotingTransport final : public ForwardingTransport {
 public:
  NotingTransport(std::unique_ptr<Transport> inner, std::vector<Sent>& notes)
      : ForwardingTransport(std::move(inner)), notes_(notes) {}

  Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept override {
    notes_.push_back({exchange.to, exchange.n_sent, exchange.from});
    return ForwardingTransport::exchange(exchange, limit);
  }

 private:
  std::vector<Sent>& notes_;
};

constexpr int kLayers = 2;
constexpr int kVocabulary = 320;

// Three passes with logits of every row (three rows, one, one), one pass without, and one of four
// rows with logits for two. Records what each rank sent meanwhile.
struct Notes {
  std::vector<Sent> leader, follower;
};

Notes notes_of_five_passes() {
  const test::TemporaryDirectory directory;
  test::TinyShape shape;
  shape.n_layers = kLayers;
  shape.vocabulary_size = kVocabulary;
  test::write_hugging_face(test::make_tiny_model(shape), directory.path());

  std::array<std::vector<Sent>, 2> notes;
  std::vector<std::unique_ptr<Transport>> ends = make_in_process_ranks(2);
  std::array<LoadOptions, 2> options;
  for (std::size_t rank = 0; rank < 2; ++rank) {
    options[rank].n_threads = 1;
    options[rank].ranks = std::make_shared<Communicator>(
        std::make_unique<NotingTransport>(std::move(ends[rank]), notes[rank]), 60);
  }
  std::size_t n_loading = 0;
  std::thread follower([&] {
    try {
      follow_model(directory.path(), options[1]);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
  try {
    const auto model = load_model(directory.path(), options[0]);
    n_loading = notes[0].size();
    const auto sequence = model->open({});
    const std::vector<TokenId> tokens = {5, 6, 7, 8, 9};
    test::run_and_keep(*model, *sequence, std::span(tokens).first(3));
    test::decode_one_by_one(*model, *sequence, std::span(tokens).last(2));
    ForwardOutput output;
    const TokenBlock silent{sequence.get(), std::span(tokens).first(2), {}};
    model->forward({&silent, 1}, {.logits = {.kind = RowSet::Kind::none}}, output);
    test::keep_first(*sequence, 2);
    const TokenBlock some{sequence.get(), std::span(tokens).first(4), {}};
    const std::array rows = {1, 2};
    model->forward({&some, 1}, {.logits = {.kind = RowSet::Kind::listed, .rows = rows}}, output);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
    options[0].ranks->give_up(error.what());
  }
  follower.join();
  // Loading sends the same on both ranks.
  for (std::vector<Sent>& its : notes) {
    its.erase(its.begin(),
              its.begin() + static_cast<std::ptrdiff_t>(std::min(n_loading, its.size())));
  }
  return {notes[0], notes[1]};
}

// The exchanges per token: one message that says what to run, four gathers per layer, the logits.
TEST(RanksExchange, AsFewTimesAsAPassNeeds) {
  const Notes notes = notes_of_five_passes();
  constexpr std::size_t kOfLayers = 4 * kLayers;
  // Five passes, four with logits, and the end.
  const std::size_t expected = 5 * (1 + kOfLayers) + 4 + 1;
  EXPECT_EQ(notes.leader.size(), expected);
  EXPECT_EQ(notes.follower.size(), expected);
}

// Logits are most of the bytes sent: only rank 0 receives them, and only for requested rows.
TEST(RanksExchange, LogitsOfTheRowsAskedForWithTheFirstAlone) {
  const Notes notes = notes_of_five_passes();
  std::vector<std::size_t> n_bytes;
  for (const Sent& sent : notes.follower) {
    if (sent.to != Peers::first) continue;
    EXPECT_EQ(sent.from, Peers::none);
    n_bytes.push_back(sent.n_bytes);
  }
  constexpr std::size_t kRow = kVocabulary / 2 * sizeof(float);
  EXPECT_EQ(n_bytes, (std::vector<std::size_t>{3 * kRow, kRow, kRow, 2 * kRow}));
}

}  // namespace
}  // namespace outrider
