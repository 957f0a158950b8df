// SPDX-License-Identifier: Apache-2.0
// A model over two ranks that are threads. A test decides when the second rank is lost.
#ifndef OUTRIDER_TESTS_SUPPORT_MODELS_LOST_RANK_H_
#define OUTRIDER_TESTS_SUPPORT_MODELS_LOST_RANK_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "model/ranks/communicator.h"
#include "model/ranks/in_process_ranks.h"
#include "outrider/error.h"
#include "outrider/model.h"
#include "outrider/ranks.h"

namespace outrider::test {

class LostRank {
 public:
  LostRank(std::filesystem::path path, double timeout_seconds, std::uint64_t kv_memory_bytes = 0)
      : path_(std::move(path)), kv_memory_bytes_(kv_memory_bytes) {
    for (std::unique_ptr<Transport>& end : make_in_process_ranks(2)) {
      communicators_.push_back(std::make_shared<Communicator>(std::move(end), timeout_seconds));
    }
    follower_ = std::thread([this] {
      try {
        follow(path_, options_of(1));
      } catch (const outrider::Error&) {
        // It receives its own good-bye, or the leader's.
      }
    });
  }
  ~LostRank() {
    communicators_[0]->give_up("the test is over");
    follower_.join();
  }
  LostRank(const LostRank&) = delete;
  LostRank& operator=(const LostRank&) = delete;

  std::shared_ptr<const Model> load() { return Model::load(path_, options_of(0)); }
  void lose() { communicators_[1]->give_up("its machine is gone"); }

 private:
  ModelOptions options_of(std::size_t rank) const {
    ModelOptions options{.kv_memory_bytes = kv_memory_bytes_, .threads = 1};
    options.ranks = std::make_shared<Ranks>(communicators_[rank]);
    return options;
  }

  std::filesystem::path path_;
  std::uint64_t kv_memory_bytes_;
  std::vector<std::shared_ptr<Communicator>> communicators_;
  std::thread follower_;
};

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_MODELS_LOST_RANK_H_
