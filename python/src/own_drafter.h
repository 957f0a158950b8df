// SPDX-License-Identifier: Apache-2.0
// Drafters written in Python, as the engine sees them.
#ifndef OUTRIDER_PYTHON_OWN_DRAFTER_H_
#define OUTRIDER_PYTHON_OWN_DRAFTER_H_

#include <memory>

#include "bindings.h"
#include "outrider/own_drafter.h"

namespace outrider::python {

// The drafter of an object with a method propose(). Throws TypeError for another object. It may be
// destroyed without the GIL.
std::shared_ptr<OwnDrafter> to_own_drafter(const py::object& object);

}  // namespace outrider::python

#endif  // OUTRIDER_PYTHON_OWN_DRAFTER_H_
