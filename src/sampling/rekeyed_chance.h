// SPDX-License-Identifier: Apache-2.0
// Gives the draws of a process within another's round separate keys.
#ifndef OUTRIDER_SAMPLING_REKEYED_CHANCE_H_
#define OUTRIDER_SAMPLING_REKEYED_CHANCE_H_

#include <cstdint>
#include <optional>

#include "sampling/chance.h"

namespace outrider {

// Forwards every draw under another key: node n becomes first + n * stride + lane. Draws of
// different lanes below `stride` never share a key, nor does any with nodes below `first` of the
// outer process. The map is one to one, so such chances can be nested. Purpose::token, whose noise
// belongs to the token's position, keeps its key.
class RekeyedChance final : public Chance {
 public:
  struct Key {
    int first = 0;
    int stride = 1;
    int lane = 0;
    std::optional<std::int64_t> position = std::nullopt;  // replaces the draw's own
  };

  // `chance` must outlive the draws.
  void reset(Chance& chance, const Key& key) {
    chance_ = &chance;
    key_ = key;
  }
  bool bernoulli(double prob, const Draw& draw) override {
    return chance_->bernoulli(prob, moved(draw));
  }
  TokenId categorical(const Distribution& distribution, const Draw& draw) override {
    return chance_->categorical(distribution, moved(draw));
  }

 private:
  Draw moved(const Draw& draw) const {
    if (draw.purpose == Purpose::token) return draw;
    return {.position = key_.position.value_or(draw.position),
            .node = key_.first + draw.node * key_.stride + key_.lane,
            .purpose = draw.purpose};
  }

  Chance* chance_ = nullptr;
  Key key_;
};

}  // namespace outrider

#endif  // OUTRIDER_SAMPLING_REKEYED_CHANCE_H_
