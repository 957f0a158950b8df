// SPDX-License-Identifier: Apache-2.0
// When experts are packed, and which are evicted. experts_bits_test.cc compares bits with those of
// experts in memory.
#include "model/pass/expert_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernels/dispatch.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr int kWidth = 16;
constexpr std::uint64_t kBytes = kWidth * kWidth * sizeof(float);

// (kWidth, kWidth) of one number; counts the reads of its rows.
class Constant final : public WeightReader {
 public:
  Constant(float value, int* n_rows_read) : value_(value), n_rows_read_(n_rows_read) {}
  WeightKind kind() const override { return WeightKind::f32; }
  std::int64_t n_rows() const override { return kWidth; }
  std::int64_t k() const override { return kWidth; }
  void read(std::int64_t, std::int64_t n_rows, WeightRows& rows) const override {
    rows.f32.assign(static_cast<std::size_t>(n_rows * kWidth), value_);
    *n_rows_read_ += static_cast<int>(n_rows);
  }

 private:
  float value_;
  int* n_rows_read_;
};

class Memory : public ::testing::Test {
 protected:
  static constexpr int kExperts = 5;
  const KernelTable& table_ = *kernels::compiled_tables().front();
  int n_rows_read_ = 0;
  std::vector<ExpertMemory::Matrices> kinds_;  // of matrices whose numbers are 10 * kind + id

  ExpertMemory make(int n_kinds, std::uint64_t n_places) {
    kinds_.reserve(static_cast<std::size_t>(n_kinds));
    std::vector<const ExpertMemory::Matrices*> all;
    for (int kind = 0; kind < n_kinds; ++kind) {
      kinds_.emplace_back();
      for (int id = 0; id < kExperts; ++id) {
        kinds_.back().push_back(Matrix::in_file(
            std::make_shared<Constant>(static_cast<float>(10 * kind + id), &n_rows_read_), table_));
      }
      all.push_back(&kinds_.back());
    }
    return ExpertMemory(all, n_places * kBytes, 1);
  }

  // The sum of a claimed matrix's rows: kWidth times its number for each column.
  float number(const ExpertMemory& memory, int kind, int id) const {
    Activations x;
    x.resize(1, kWidth, {});
    std::fill_n(x.row(0), kWidth, 1.0F);
    std::vector<float> y(kWidth);
    run_team(1, [&](const Team& team) {
      memory.matrix(kinds_[static_cast<std::size_t>(kind)], id).multiply(team, x, y.data(), kWidth);
    });
    return y[3] / kWidth;
  }

  // Returns what one op claims at a time, and checks all claimed matrices.
  std::vector<std::vector<int>> use(ExpertMemory& memory, const std::vector<int>& kinds,
                                    const std::vector<int>& ids) {
    std::vector<const ExpertMemory::Matrices*> wanted;
    for (const int kind : kinds) wanted.push_back(&kinds_[static_cast<std::size_t>(kind)]);
    std::vector<std::vector<int>> claims;
    memory.begin(wanted, ids);
    do {
      memory.claim();
      run_team(1, [&](const Team& team) { memory.pack(team); });
      claims.emplace_back(memory.claimed().begin(), memory.claimed().end());
      for (const int id : claims.back()) {
        for (const int kind : kinds) {
          EXPECT_EQ(number(memory, kind, id), static_cast<float>(10 * kind + id));
        }
      }
    } while (!memory.is_last());
    return claims;
  }

  int packed() { return std::exchange(n_rows_read_, 0) / kWidth; }
};

using Claims = std::vector<std::vector<int>>;

TEST_F(Memory, PacksAMatrixOnceWhileThereIsRoom) {
  ExpertMemory memory = make(1, kExperts);
  EXPECT_EQ(use(memory, {0}, {1, 3}), (Claims{{1, 3}}));
  EXPECT_EQ(packed(), 2);
  EXPECT_EQ(use(memory, {0}, {0, 1, 2, 3, 4}), (Claims{{1, 3, 0, 2, 4}}));
  EXPECT_EQ(packed(), 3);
  EXPECT_EQ(use(memory, {0}, {4, 2}), (Claims{{4, 2}}));
  EXPECT_EQ(packed(), 0);
  EXPECT_EQ(memory.n_bytes(), 5 * kBytes);
}

TEST_F(Memory, GivesTheOneUsedLongestAgoAway) {
  ExpertMemory memory = make(1, 3);
  use(memory, {0}, {0});
  use(memory, {0}, {1});
  use(memory, {0}, {2});
  use(memory, {0}, {0});  // so 1 is the least recently used
  EXPECT_EQ(packed(), 3);
  use(memory, {0}, {3});
  EXPECT_EQ(packed(), 1);
  use(memory, {0}, {0, 2, 3});
  EXPECT_EQ(packed(), 0);
  use(memory, {0}, {1});
  EXPECT_EQ(packed(), 1);
}

// Experts of this op that are in memory are not evicted for its others.
TEST_F(Memory, BeginsWithWhatIsThere) {
  ExpertMemory memory = make(1, 3);
  use(memory, {0}, {2, 3, 4});
  packed();
  EXPECT_EQ(use(memory, {0}, {0, 1, 2, 3, 4}), (Claims{{2, 3, 4}, {0, 1}}));
  EXPECT_EQ(packed(), 2);
}

TEST_F(Memory, ClaimsAllOfAnExpertsMatricesTogether) {
  ExpertMemory memory = make(3, 5);
  // Two experts' gates and ups take four of five places.
  EXPECT_EQ(use(memory, {0, 1}, {0, 2, 4}), (Claims{{0, 2}, {4}}));
  EXPECT_EQ(packed(), 6);
  EXPECT_EQ(use(memory, {2}, {0, 1, 2, 3, 4}), (Claims{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(packed(), 5);
  EXPECT_EQ(use(memory, {0, 1}, {}), (Claims{{}}));
}

TEST_F(Memory, WithRoomForOneExpertPacksEach) {
  ExpertMemory memory = make(3, 2);
  EXPECT_EQ(use(memory, {0, 1}, {1, 2, 3}), (Claims{{1}, {2}, {3}}));
  EXPECT_EQ(use(memory, {2}, {1, 2, 3}), (Claims{{1, 2}, {3}}));
  EXPECT_EQ(packed(), 9);
}

TEST_F(Memory, RefusesLessThanOneProductNeeds) { EXPECT_THROW(make(3, 1), UsageError); }

}  // namespace
}  // namespace outrider
