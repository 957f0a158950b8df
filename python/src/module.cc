// outrider._outrider: the engine's public headers for Python. The package outrider/ puts what
// Python writes better around it.
#include "bindings.h"

PYBIND11_MODULE(_outrider, module) {
  using namespace outrider::python;
  module.doc() = "The engine of the package outrider.";
  bind_errors(module);
  bind_tokenizer(module);
  bind_model(module);
  bind_sampling(module);
  bind_grammar(module);
  bind_own_drafter(module);
  bind_mask(module);
  bind_weights(module);
  bind_generate(module);
}
