// When a further thread pays.
#ifndef OUTRIDER_MODEL_THREAD_SHARE_H_
#define OUTRIDER_MODEL_THREAD_SHARE_H_

#include <cstdint>

namespace outrider {

// Its price are the ten barriers of a layer (eleven where attention's splits are shared), 42 ns
// each beside the waiting (tensor/barrier.h), and the beginning and end of the team, 0.5 to 0.7 us
// for all layers. A thread's share should be clearly longer than that, since the estimate of it is
// rough. (Layers of 6 us a thread, the family's drafter in int8: two threads take 0.86 of one's
// time; of 10 us, the same in bf16, 0.72. On two cores of an AMD EPYC, eight turns.)
inline constexpr std::int64_t kLeastShare_ns = 5'000;

// Of at most n_threads, as many as leave each least_share_ns of work that reads so many bytes of
// weights once and makes so many products. 0: all. Bits never depend on it.
int threads_for(std::int64_t weight_bytes, std::int64_t n_products, std::int64_t least_share_ns,
                int n_threads);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_THREAD_SHARE_H_
