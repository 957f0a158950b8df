// SPDX-License-Identifier: Apache-2.0
// The tables in this build, and which of them this machine can run. dispatch.cc is the only place
// that queries the processor (CPUID, XGETBV) or the system about it (getauxval).
#ifndef OUTRIDER_KERNELS_DISPATCH_H_
#define OUTRIDER_KERNELS_DISPATCH_H_

#include <span>

#include "kernels/table.h"

namespace outrider::kernels {

// All compiled-in tables, slowest first; the scalar one is always included.
std::span<const KernelTable* const> compiled_tables();

// Whether this machine (processor and operating system) can run it.
bool is_supported(const KernelTable& table);

// The compiled-in table of that name, or null.
const KernelTable* find_table(const char* name);

// The last supported one, which is the fastest.
const KernelTable& best_table();

}  // namespace outrider::kernels

#endif  // OUTRIDER_KERNELS_DISPATCH_H_
