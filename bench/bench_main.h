// What every benchmark program brings, and bench_main.cc runs.
#ifndef OUTRIDER_BENCH_BENCH_MAIN_H_
#define OUTRIDER_BENCH_BENCH_MAIN_H_

namespace outrider {

// Registers the program's benchmarks, one for every table this machine runs where tables differ.
void register_benchmarks();

}  // namespace outrider

#endif  // OUTRIDER_BENCH_BENCH_MAIN_H_
