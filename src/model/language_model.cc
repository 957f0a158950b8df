#include "model/language_model.h"

#include "outrider/error.h"

namespace outrider {

std::unique_ptr<Sequence> LanguageModel::fork_without(const Sequence&, std::span<const int>) const {
  return nullptr;
}

void LanguageModel::embed(std::span<const TokenId>, std::span<float>) {
  throw Error("embed", "model", "one that lends its input matrix", "one that does not");
}

void LanguageModel::project(std::span<const float>, ForwardOutput&) {
  throw Error("project", "model", "one that lends its output matrix", "one that does not");
}

std::optional<Matrix> LanguageModel::narrower_output(WeightKind) const { return std::nullopt; }

}  // namespace outrider
