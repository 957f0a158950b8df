// SPDX-License-Identifier: Apache-2.0
#include "model/families/recurrent/mamba.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/elementary.h"
#include "model/load/read_size.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// Stored as x, B, C, n rows each; here C, B, x.
std::vector<float> in_order_of_channels(const DeltaShape& shape, int n,
                                        const std::vector<float>& stored) {
  if (stored.empty()) return {};  // in the first run, which only checks
  const auto keys = shape.keys_width();
  const auto values = shape.values_width();
  std::vector<float> ordered;
  ordered.reserve(stored.size());
  for (int i = 0; i < n; ++i) {
    const auto x = stored.begin() + static_cast<std::ptrdiff_t>(i) * shape.convolved_width();
    const auto b = x + values;
    const auto c = b + keys;
    ordered.insert(ordered.end(), c, c + keys);
    ordered.insert(ordered.end(), b, b + keys);
    ordered.insert(ordered.end(), x, x + values);
  }
  return ordered;
}

// A negative number per head, which directories store as the logarithm of its negative.
std::vector<float> decay_rates(std::vector<float> stored, bool is_gguf) {
  for (float& rate : stored) {
    if (!is_gguf) rate = static_cast<float>(-portable_exp(rate));
    if (!(rate <= 0)) {  // otherwise a state would grow with every token
      throw Error("load model", "ssm_a", "numbers of at most 0", fmt::format("{}", rate));
    }
  }
  return stored;
}

}  // namespace

int read_mamba_head_dim(const ConfigSource& source, int n_heads) {
  constexpr ConfigKey kWidth = {nullptr, "ssm.inner_size"};
  const int width = read_size(source, kWidth, 0, n_heads, n_heads * kMaxMambaDim);
  if (width % n_heads != 0) {
    source.fail(kWidth, fmt::format("a multiple of the heads, {}", n_heads),
                fmt::format("{}", width));
  }
  return width / n_heads;
}

void require_whole_groups(const ConfigSource& source, const ConfigKey& n_heads,
                          const ConfigKey& n_groups, const DeltaShape& shape) {
  if (shape.n_value_heads % shape.n_key_heads == 0) return;
  source.fail(
      n_heads,
      fmt::format("a multiple of {}, {}", source.is_gguf() ? n_groups.gguf : n_groups.hugging_face,
                  shape.n_key_heads),
      fmt::format("{}", shape.n_value_heads));
}

void read_step_limits(const ConfigSource& source, MambaForm& form) {
  constexpr ConfigKey kLimit = {"time_step_limit", nullptr};
  const auto limits = source.reals(kLimit);
  if (!limits) return;
  if (limits->size() != 2 || !((*limits)[0] >= 0 && (*limits)[0] <= (*limits)[1])) {
    source.fail(kLimit, "two numbers from 0 on, the first at most the second",
                fmt::format("{}", fmt::join(*limits, ", ")));
  }
  form.min_step = static_cast<float>((*limits)[0]);
  form.max_step = static_cast<float>((*limits)[1]);
}

Mamba2 load_mamba(LayerLoader& from, const MambaForm& form, const char* block, int dim,
                  float epsilon) {
  const DeltaShape& shape = form.shape;
  const int keys = shape.keys_width();
  const int values = shape.values_width();
  const int n_heads = shape.n_value_heads;
  const int n_taps = shape.n_taps;
  const Bias bias = form.product_bias ? Bias::always : Bias::never;
  // Calls use(name) with the full name, which is valid during the call.
  const auto named = [&](const char* hugging_face, const char* gguf, const auto& use) {
    const std::string name = fmt::format("{}{}", block, hugging_face);
    return use(TensorName{name.c_str(), gguf});
  };
  Mamba2 loaded;
  loaded.shape = shape;
  int first = 0;
  const auto next_rows = [&](int n) {
    const int at = std::exchange(first, first + n);
    return named("in_proj", "ssm_in", [&](const TensorName& name) {
      return from.linear_rows(name, 2 * (values + keys) + n_heads, at, n, dim, bias);
    });
  };
  loaded.gate = next_rows(values);
  loaded.value = next_rows(values);
  loaded.key = next_rows(keys);
  loaded.query = next_rows(keys);
  loaded.step = next_rows(n_heads);
  const int width = shape.convolved_width();
  named("conv1d", "ssm_conv1d", [&](const TensorName& name) {
    loaded.filter = in_order_of_channels(shape, n_taps, from.filter(name, width, n_taps));
    if (form.filter_bias) {
      loaded.filter_bias = in_order_of_channels(shape, 1, from.bias(name, width));
    }
  });
  // GGUF has a column instead of a vector.
  const auto of_heads = [&](const TensorName& name) {
    return from.is_gguf() ? from.stacked_vectors(name, "", n_heads, 1)
                          : from.plain_vector(name, n_heads);
  };
  loaded.step_bias = named("dt_bias", "ssm_dt.bias", [&](const TensorName& name) {
    return from.plain_vector(name, n_heads);
  });
  loaded.skip = named("D", "ssm_d", of_heads);
  loaded.decay_rates = decay_rates(named("A_log", "ssm_a", of_heads), from.is_gguf());
  loaded.min_step = form.min_step;
  loaded.max_step = form.max_step;
  // GGUF has a row per group.
  const int n_groups = shape.n_key_heads;
  loaded.norm = {.weight = named("norm", "ssm_norm",
                                 [&](const TensorName& name) {
                                   return from.is_gguf()
                                              ? from.stacked_vectors(name, ".weight", n_groups,
                                                                     values / n_groups)
                                              : from.vector(name, values);
                                 }),
                 .epsilon = epsilon,
                 .n_groups = form.norms_groups ? n_groups : 1};
  loaded.output = named("out_proj", "ssm_out", [&](const TensorName& name) {
    return from.linear(name, dim, values, bias);
  });
  return loaded;
}

}  // namespace outrider
