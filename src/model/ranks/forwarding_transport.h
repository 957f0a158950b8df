// SPDX-License-Identifier: Apache-2.0
// A transport on top of another one.
#ifndef OUTRIDER_MODEL_RANKS_FORWARDING_TRANSPORT_H_
#define OUTRIDER_MODEL_RANKS_FORWARDING_TRANSPORT_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "model/ranks/transport.h"

namespace outrider {

// Forwards every call to the inner transport; subclasses override what they change.
class ForwardingTransport : public Transport {
 public:
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int n_ranks() const override { return inner_->n_ranks(); }
  Status exchange(const Exchange& exchange, const WaitLimit& limit) noexcept override {
    return inner_->exchange(exchange, limit);
  }
  std::size_t max_bytes() const override { return inner_->max_bytes(); }
  int culprit() const override { return inner_->culprit(); }
  const char* reason() const override { return inner_->reason(); }
  void give_up(int culprit, const char* why) noexcept override { inner_->give_up(culprit, why); }
  void finish(double max_seconds) noexcept override { inner_->finish(max_seconds); }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_FORWARDING_TRANSPORT_H_
