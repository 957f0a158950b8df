// SPDX-License-Identifier: Apache-2.0
// The results of `outrider tune`, on one screen.
#ifndef OUTRIDER_APPS_TUNE_TUNE_SCREEN_H_
#define OUTRIDER_APPS_TUNE_TUNE_SCREEN_H_

#include <string>

#include "outrider/model.h"
#include "outrider/tune_drafters.h"

namespace outrider::cli {

// 24 lines of 80 columns for three drafters with short names at two temperatures. After an
// interrupted measurement it may hold only the model.
std::string tune_screen(const Model& model, const Tuning& tuning);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TUNE_TUNE_SCREEN_H_
