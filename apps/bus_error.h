// What becomes of a program when a file it has mapped is made shorter by someone else.
#ifndef OUTRIDER_APPS_BUS_ERROR_H_
#define OUTRIDER_APPS_BUS_ERROR_H_

#include <string_view>

namespace outrider::cli {

// A model's file is read through a mapping for as long as the model lives. Once the file is cut
// short, or its disk fails, touching what is gone raises SIGBUS, in whichever thread it is. From
// this call on that is one line on standard error, which begins with the program's name, and exit
// status 1; a SIGBUS of any other cause still kills.
void explain_bus_errors(std::string_view program);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BUS_ERROR_H_
