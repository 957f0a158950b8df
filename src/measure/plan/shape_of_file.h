// The shape of a model at hand: of its files' headers, or loaded.
#ifndef OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_
#define OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_

#include <filesystem>

#include "outrider/model.h"
#include "outrider/speed_plan.h"

namespace outrider {

// PATH as for Model::load. Weights count as they are stored, not as they would be held: those of
// the layers and of the output matrix. Headers are read as far as all families have the same:
// windows are left out. Throws Error, also for weights of other types than floats and GGUF's,
// for models with recurrent layers, and with experts in some layers alone.
ModelShape shape_of_file(const std::filesystem::path& path);

// Weights as they are held: packed bytes by kind. Throws Error for the same models.
ModelShape shape_of_model(const Model& model);

}  // namespace outrider

#endif  // OUTRIDER_MEASURE_PLAN_SHAPE_OF_FILE_H_
