// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/version.h"

namespace outrider::cli {

const char* const kVersion = OUTRIDER_VERSION;

}  // namespace outrider::cli
