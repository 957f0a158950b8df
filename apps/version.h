// The version the build system knows.
#ifndef OUTRIDER_APPS_VERSION_H_
#define OUTRIDER_APPS_VERSION_H_

namespace outrider::cli {

extern const char* const kVersion;

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_VERSION_H_
