// SPDX-License-Identifier: Apache-2.0
// The default kernel table of a process.
#ifndef OUTRIDER_TENSOR_KERNELS_IN_USE_H_
#define OUTRIDER_TENSOR_KERNELS_IN_USE_H_

#include <string_view>

#include "kernels/table.h"

namespace outrider {

// The table of that name. For an empty name, the one that the environment variable OUTRIDER_KERNELS
// names, or the fastest supported. Throws UsageError, with the tables, if it is unknown or this
// machine cannot run it.
const kernels::KernelTable& choose_kernels(std::string_view name = {});

}  // namespace outrider

#endif  // OUTRIDER_TENSOR_KERNELS_IN_USE_H_
