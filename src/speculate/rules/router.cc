// SPDX-License-Identifier: Apache-2.0
#include "speculate/rules/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "base/elementary.h"
#include "base/files/mapped_file.h"
#include "io/strict_json.h"
#include "outrider/error.h"
#include "sampling/divergence.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "load router";
constexpr const char* kFormat = "outrider-router";

class RouterReader final : public StrictJsonHandler {
 public:
  explicit RouterReader(const std::string& file) : StrictJsonHandler(kOperation, file) {}

  RouterWeights finish() const {
    for (const char* key : {"format", "version", "bias", "weights"}) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        throw Error(kOperation, description(), fmt::format("the key '{}'", key), "none");
      }
    }
    return router_;
  }

  bool start_object(std::size_t) override {
    if (depth_ == 2 || (depth_ == 1 && key_ != "weights")) return unexpected("an object");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }
  bool key(std::string& key) override {
    key_ = key;
    const std::string path = depth_ == 2 ? "weights." + key : key;
    if (std::find(seen_.begin(), seen_.end(), path) != seen_.end()) {
      throw Error(kOperation, description(), "each key once", fmt::format("'{}' twice", path));
    }
    seen_.push_back(path);
    if (depth_ == 2) {
      const auto at = std::find(kRouterFeatures.begin(), kRouterFeatures.end(), key);
      if (at == kRouterFeatures.end()) {
        throw Error(kOperation, description() + " weights",
                    fmt::format("features among {}", fmt::join(kRouterFeatures, ", ")), key);
      }
      feature_ = static_cast<std::size_t>(at - kRouterFeatures.begin());
      return true;
    }
    for (const char* known : {"format", "version", "bias", "weights", "threshold"}) {
      if (key == known) return true;
    }
    throw Error(kOperation, description(),
                "the keys format, version, bias, weights and threshold alone", key);
  }
  bool string(std::string& value) override {
    if (depth_ != 1 || key_ != "format" || value != kFormat) {
      return unexpected(fmt::format("'{}'", value));
    }
    return true;
  }
  bool number_integer(std::int64_t value) override {
    return number(static_cast<double>(value), fmt::to_string(value));
  }
  bool number_unsigned(std::uint64_t value) override {
    return number(static_cast<double>(value), fmt::to_string(value));
  }
  bool number_float(double value, const std::string& text) override { return number(value, text); }

 private:
  bool number(double value, const std::string& text) {
    if (!std::isfinite(value)) return unexpected(text);
    if (depth_ == 2) {
      router_.weights[feature_] = value;
    } else if (depth_ == 1 && key_ == "version" && value == 1) {
      // the bias has one value
    } else if (depth_ == 1 && key_ == "bias") {
      router_.bias = value;
    } else if (depth_ == 1 && key_ == "threshold" && value >= 0 && value <= 1) {
      router_.threshold = value;
    } else {
      return unexpected(text);
    }
    return true;
  }
  Expectation expected() const override {
    if (depth_ == 0) return {.object = description(), .what = "a JSON object"};
    if (depth_ == 2)
      return {.object = fmt::format("{} weights.{}", description(), key_), .what = "a number"};
    const std::string object = fmt::format("{} {}", description(), key_);
    if (key_ == "format") return {.object = object, .what = fmt::format("'{}'", kFormat)};
    if (key_ == "version") return {.object = object, .what = "1"};
    if (key_ == "weights") return {.object = object, .what = "an object {feature: number}"};
    if (key_ == "threshold") return {.object = object, .what = "a number from 0 to 1"};
    return {.object = object, .what = "a number"};
  }

  RouterWeights router_;
  int depth_ = 0;
  std::string key_;
  std::size_t feature_ = 0;
  std::vector<std::string> seen_;
};

}  // namespace

RouterWeights read_router(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  RouterReader reader(file.string());
  reader.read({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()});
  return reader.finish();
}

RouterFeatures router_features(const Distribution& raw_draft, const Distribution& raw_target) {
  return {largest_prob(raw_draft),
          largest_prob(raw_target),
          entropy(raw_draft),
          entropy(raw_target),
          total_variation(raw_draft, raw_target),
          raw_draft.argmax() == raw_target.argmax() ? 1.0 : 0.0};
}

bool RouterRule::defers(NodeViews& views, int node) const {
  const RouterFeatures features = router_features(*views.raw_draft(node), views.raw_target(node));
  double sum = weights_.bias;
  for (std::size_t i = 0; i < features.size(); ++i) sum += weights_.weights[i] * features[i];
  return 1 / (1 + portable_exp(-sum)) > weights_.threshold;
}

}  // namespace outrider
