// The version from the build system.
#ifndef OUTRIDER_APPS_VERSION_H_
#define OUTRIDER_APPS_VERSION_H_

namespace outrider::cli {

inline constexpr const char* kVersion = OUTRIDER_VERSION;

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_VERSION_H_
