// SPDX-License-Identifier: Apache-2.0
// The function that every benchmark program defines and bench_main.cc calls.
#ifndef OUTRIDER_BENCH_BENCH_MAIN_H_
#define OUTRIDER_BENCH_BENCH_MAIN_H_

namespace outrider {

// Registers the program's benchmarks: one for every kernel table of this machine if the tables
// differ.
void register_benchmarks();

}  // namespace outrider

#endif  // OUTRIDER_BENCH_BENCH_MAIN_H_
