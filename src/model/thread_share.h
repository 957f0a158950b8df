// SPDX-License-Identifier: Apache-2.0
// When a further thread pays.
#ifndef OUTRIDER_MODEL_THREAD_SHARE_H_
#define OUTRIDER_MODEL_THREAD_SHARE_H_

#include <cstdint>

namespace outrider {

// The minimum work of a thread. A further thread costs the ten barriers of a layer (eleven if
// attention's splits are shared), 42 ns each besides waiting (tensor/barrier.h). It also costs the
// start and end of the team, 0.5 to 0.7 us for all layers. Its share should be clearly longer,
// since the estimate of it is rough. (With layers of 6 us a thread, the drafter of models/ in int8,
// two threads take 0.86 of one's time; with 10 us, the same in bf16, 0.72. On two cores of an AMD
// EPYC, eight measurements in turn.)
inline constexpr std::int64_t kMinShare_ns = 5'000;

// The number of threads, at most n_threads, for work that reads weight_bytes once and computes
// n_products products, such that each has at least min_share_ns of work. A min_share_ns of 0
// gives n_threads. Bits never depend on it.
int threads_for(std::int64_t weight_bytes, std::int64_t n_products, std::int64_t min_share_ns,
                int n_threads);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_THREAD_SHARE_H_
