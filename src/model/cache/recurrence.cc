#include "model/cache/recurrence.h"

#include <algorithm>

namespace outrider {

void advance(const RecurrentShape& shape, const float* inputs, float* state) {
  switch (shape.recurrence) {
    case Recurrence::none:
      return;
    case Recurrence::convolution:
      std::copy(state + shape.input_width, state + shape.state_width, state);
      std::copy_n(inputs, shape.input_width, state + shape.state_width - shape.input_width);
      return;
  }
}

}  // namespace outrider
