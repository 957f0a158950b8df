// SPDX-License-Identifier: Apache-2.0
// The version from the build system.
#ifndef OUTRIDER_APPS_CLI_VERSION_H_
#define OUTRIDER_APPS_CLI_VERSION_H_

namespace outrider::cli {

extern const char* const kVersion;

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_VERSION_H_
