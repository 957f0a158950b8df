// SPDX-License-Identifier: Apache-2.0
// Masks written in Python, as the engine sees them.
#ifndef OUTRIDER_PYTHON_MASK_H_
#define OUTRIDER_PYTHON_MASK_H_

#include "bindings.h"
#include "outrider/model.h"
#include "outrider/token_mask.h"

namespace outrider::python {

// The mask of a callable, for texts of the model; it may be copied and destroyed without the GIL.
// Empty for None. Throws TypeError for another object.
TokenMask to_mask(const py::handle& object, const Model& model);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_MASK_H_
