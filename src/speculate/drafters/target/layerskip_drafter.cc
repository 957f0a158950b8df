// SPDX-License-Identifier: Apache-2.0
#include "speculate/drafters/target/layerskip_drafter.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "outrider/error.h"
#include "speculate/drafters/model_drafter.h"
#include "speculate/tree_shapes/fixed_shape.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "read drafter";
constexpr int kMaxLayers = 10'000;  // far beyond any model; bounds what a user types

std::vector<int> read_layers(const std::string& text) {
  std::vector<int> layers;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t end = std::min(rest.find('+'), rest.size());
    const std::string_view number = rest.substr(0, end);
    int layer = -1;
    const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), layer);
    if (error != std::errc() || last != number.data() + number.size() || layer < 0 ||
        layer >= kMaxLayers || std::find(layers.begin(), layers.end(), layer) != layers.end()) {
      throw UsageError(kOperation, "layerskip:skip", "different layers, numbered from 0, as in 1+3",
                       text);
    }
    layers.push_back(layer);
    more = end < rest.size();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::sort(layers.begin(), layers.end());
  return layers;
}

}  // namespace

ShortenedModel::ShortenedModel(LanguageModel& model, std::vector<int> skip_layers)
    : model_(&model), skip_layers_(std::move(skip_layers)) {}

void ShortenedModel::forward(std::span<const TokenBlock> blocks, const ForwardRequest& request,
                             ForwardOutput& output) {
  ForwardRequest shortened = request;
  shortened.skip_layers = skip_layers_;
  model_->forward(blocks, shortened, output);
}

DrafterPlan read_layerskip_drafter(const Spec& spec) {
  spec.require_no_value();
  const std::optional<int> n_first = spec.integer("layers", 1, kMaxLayers);
  const std::optional<std::string> skipped = spec.text("skip");
  if (n_first.has_value() == skipped.has_value()) {
    throw UsageError(kOperation, "layerskip", "layers=L or skip=I+J", n_first ? "both" : "neither");
  }
  const std::vector<int> listed = skipped ? read_layers(*skipped) : std::vector<int>();
  DrafterPlan plan;
  plan.traits = {.has_draft_prob = true, .prefix_determined = true};
  plan.shape = chain_shape(kDefaultDraftLength);
  plan.confidence = spec.number("confidence", 0, 1).value_or(0);
  plan.make = [n_first, listed](const DrafterMaterials& materials) {
    const int n_layers = materials.target->config().n_layers;
    std::vector<int> skip_layers = listed;
    for (int layer = n_first.value_or(n_layers); layer < n_layers; ++layer) {
      skip_layers.push_back(layer);
    }
    const auto n_skipped = static_cast<int>(skip_layers.size());
    if (n_skipped == 0 || n_skipped == n_layers || skip_layers.back() >= n_layers) {
      throw UsageError("make drafter", "layerskip",
                       fmt::format("some of the target's {} layers, but not all", n_layers),
                       n_first ? fmt::format("layers={}", *n_first)
                               : fmt::format("skip={}", fmt::join(skip_layers, "+")));
    }
    if (const auto keys = unreadable_keys(materials.target->config(), skip_layers)) {
      throw UsageError("make drafter", "layerskip",
                       fmt::format("layer {} left out only with layer {}, which reads its keys",
                                   keys->lender, keys->layer),
                       fmt::format("skip={}", fmt::join(skip_layers, "+")));
    }
    // An early exit continues from the target's own keys and values and never runs a prompt.
    const bool exits_early = skip_layers.front() == n_layers - n_skipped;
    FollowSequence follow;
    if (exits_early) {
      follow = [target = materials.target, skip_layers](const Sequence& judged) {
        return target->fork_without(judged, skip_layers);
      };
    }
    return std::make_unique<ModelDrafter>(
        std::make_unique<ShortenedModel>(*materials.target, std::move(skip_layers)),
        materials.vocabulary_size,
        ModelDrafting{.name = "layerskip", .follow = std::move(follow), .uses_target_cache = true});
  };
  return plan;
}

}  // namespace outrider
