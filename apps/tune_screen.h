// What `outrider tune` found, on one screen.
#ifndef OUTRIDER_APPS_TUNE_SCREEN_H_
#define OUTRIDER_APPS_TUNE_SCREEN_H_

#include <string>

#include "outrider/model.h"
#include "outrider/tune_drafters.h"

namespace outrider::cli {

// 24 lines of 80 columns for three drafters of short names at two temperatures. May be empty but
// for the model, where the measurement was interrupted.
std::string tune_screen(const Model& model, const Tuning& tuning);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_SCREEN_H_
