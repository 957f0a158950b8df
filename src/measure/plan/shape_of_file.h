// SPDX-License-Identifier: Apache-2.0
// The shape of a model, from its files' headers or from the loaded model.
#ifndef OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_
#define OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_

#include <filesystem>

#include "outrider/model.h"
#include "outrider/speed_plan.h"

namespace outrider {

// PATH as for Model::load. Weights of the layers and of the output matrix count as they are stored,
// not as they would be loaded. Headers are read as far as all families have the same: windows are
// left out. Throws Error; also for weights of types other than floats and GGUF's, for recurrent
// layers, and for models in which only some layers have experts.
ModelShape shape_of_file(const std::filesystem::path& path);

// Weights as they are loaded: packed bytes by kind. Throws Error for the same models.
ModelShape shape_of_model(const Model& model);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_
