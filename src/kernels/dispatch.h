// Which tables this build has and which of them this machine can run. dispatch.cc is the only place
// that asks the processor (CPUID, XGETBV) or the system about it (getauxval).
#ifndef OUTRIDER_KERNELS_DISPATCH_H_
#define OUTRIDER_KERNELS_DISPATCH_H_

#include <span>

#include "kernels/table.h"

namespace outrider::kernels {

// All compiled-in tables, slowest first; the scalar one is always there.
std::span<const KernelTable* const> compiled_tables();

// Whether this machine (processor and operating system) can run it.
bool is_supported(const KernelTable& table);

// By name among the compiled tables; null if there is none.
const KernelTable* find_table(const char* name);

// The last, fastest supported one.
const KernelTable& best_table();

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_DISPATCH_H_
