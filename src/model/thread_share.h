// When a further thread pays.
#ifndef OUTRIDER_MODEL_THREAD_SHARE_H_
#define OUTRIDER_MODEL_THREAD_SHARE_H_

#include <cstdint>

namespace outrider {

// Its price are the ten barriers of a layer: 12 us a layer, measured as the difference of one and
// two threads on models of 64 to 384 wide, on a busy machine with OMP_WAIT_POLICY=passive. A
// thread's share must be longer than that to gain anything, and should be clearly longer, since the
// estimate of it is rough.
inline constexpr std::int64_t kLeastShare_ns = 20'000;

// Of at most n_threads, as many as leave each least_share_ns of work that reads so many bytes of
// weights once and makes so many products. 0: all. Bits never depend on it.
int threads_for(std::int64_t weight_bytes, std::int64_t n_products, std::int64_t least_share_ns,
                int n_threads);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_THREAD_SHARE_H_
