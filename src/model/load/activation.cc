// SPDX-License-Identifier: Apache-2.0
#include "model/load/activation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>

namespace outrider {
namespace {

struct NamedActivation {
  const char* name;
  Activation activation;
};
// Some names of one formula mean different ways of computing it.
constexpr NamedActivation kActivations[] = {
    {"gelu", Activation::gelu_erf},      {"gelu_python", Activation::gelu_erf},
    {"gelu_new", Activation::gelu_tanh}, {"gelu_fast", Activation::gelu_tanh},
    {"silu", Activation::silu},          {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"swish", Activation::silu},
};

}  // namespace

Activation read_activation(const ConfigSource& source, const char* hugging_face_key,
                           Activation otherwise) {
  const ConfigKey key = {hugging_face_key, nullptr};
  const std::optional<std::string> name = source.text(key);
  if (!name) return otherwise;
  const auto* const found =
      std::find_if(std::begin(kActivations), std::end(kActivations),
                   [&](const NamedActivation& named) { return *name == named.name; });
  if (found == std::end(kActivations)) {
    std::string known;
    for (const NamedActivation& named : kActivations) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", named.name);
    }
    source.fail(key, fmt::format("one of {}", known), *name);
  }
  return found->activation;
}

}  // namespace outrider
