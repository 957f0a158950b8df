// SPDX-License-Identifier: Apache-2.0
#include "device/trials/known_answers.h"

#include <fmt/format.h>

#include <mutex>
#include <utility>

#include "device/trials/attend_trial.h"
#include "device/trials/cache_trials.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

using kernels::KvKind;
using kernels::WeightKind;

constexpr std::uint32_t kSeed = 20250611;
constexpr int kWidth = 320;
constexpr TrialRows kRows = {3, 4};

bool is_product(Kernel kernel) {
  return kernel == Kernel::product_int8 || kernel == Kernel::product_int4;
}

// Recorded for as many rows as a workgroup processes together; a quarter of them is not used.
// In parts: for a matrix in one range the shader does the same.
NamedTrial product_of(WeightKind kind, std::uint32_t together) {
  const int most = static_cast<int>(together);
  return {fmt::format("product {}, {} {} together", kernels::name_of(kind), most,
                      most == 1 ? "row" : "rows"),
          product_parts_trial(kind, {most - most / 4, most}, 40, kWidth, kSeed)};
}

// Two splits of positions, the second of which is short; once with all heads and once in parts.
std::vector<NamedTrial> attentions_of(KvKind kv, bool has_cap) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8"};
  AttendTrialShape shape = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .n_keys = 1100};
  shape.softcap = has_cap ? 2 : 0;
  AttendTrialShape in_parts = shape;
  in_parts.n_parts = 2;
  const std::string name =
      fmt::format("{}attention {}", has_cap ? "capped " : "", kNames[static_cast<int>(kv)]);
  std::vector<NamedTrial> trials;
  trials.push_back({name, attend_trial(kv, kRows, shape, kSeed)});
  trials.push_back({name + " in parts", attend_trial(kv, kRows, in_parts, kSeed)});
  return trials;
}

// Some of a row's heads.
CacheShape cache_of(std::uint32_t kv) {
  return {.kv = static_cast<KvKind>(kv),
          .n_kv_heads = 2,
          .head_dim = 40,
          .first_head = 1,
          .heads_of_row = 4};
}

const char* name_of_gate(GateActivation activation) {
  constexpr const char* kNames[] = {"silu", "gelu", "gelu by erf"};
  return kNames[static_cast<int>(activation)];
}

const char* name_of_kv(std::uint32_t kv) {
  constexpr const char* kNames[] = {"f32", "bf16", "int8"};
  return kNames[kv];
}

// Forms of a kernel for passes of other sizes.
std::vector<std::uint32_t> forms_of(const Step& step) {
  if (is_product(step.kernel)) return {1, 2, 4, 8};
  return {step.variant};
}

}  // namespace

std::vector<NamedTrial> trials_of(Kernel kernel, std::uint32_t variant) {
  std::vector<NamedTrial> trials;
  const auto add = [&](std::string what, Trial trial) {
    trials.push_back({std::move(what), std::move(trial)});
  };
  switch (kernel) {
    case Kernel::arithmetic:
      add(fmt::format("function {}", variant),
          arithmetic_trial(static_cast<Function>(variant), 1024, kSeed));
      break;
    case Kernel::quantize_rows:
      add("quantize rows", quantize_trial(kRows, kWidth, kSeed));
      break;
    case Kernel::product_int8:
      trials.push_back(product_of(WeightKind::int8, variant));
      break;
    case Kernel::product_int4:
      trials.push_back(product_of(WeightKind::int4, variant));
      break;
    case Kernel::rms_norm:
      add("rms norm", norm_trial(kRows, kWidth, kSeed));
      break;
    case Kernel::norm_in_place:
      add("norm of heads", pieces_trial(kRows, 3, 40, false, kSeed));
      break;
    case Kernel::apply_rope:
      add("apply_rope", apply_rope_trial(kRows, 3, 32, kSeed));
      break;
    case Kernel::layer_norm:
      add("layer norm", layer_norm_trial(kRows, kWidth, true, kSeed));
      add("layer norm without a bias", layer_norm_trial(kRows, kWidth, false, kSeed));
      break;
    case Kernel::gate: {
      const auto activation = static_cast<GateActivation>(variant);
      add(name_of_gate(activation), gate_trial(kRows, kWidth, kSeed, activation));
      break;
    }
    case Kernel::activate: {
      const auto activation = static_cast<GateActivation>(variant);
      add(fmt::format("{} without a gate", name_of_gate(activation)),
          activate_trial(kRows, kWidth, activation, kSeed));
      break;
    }
    case Kernel::cap_rows:
      add("soft cap", cap_trial(kRows, kWidth, 1.5F, kSeed));
      break;
    case Kernel::best_of_rows:  // two parts of each row, and then their larger one
      add("largest of rows", best_trial(kRows, static_cast<int>(kPartOfBest) + kWidth, kSeed));
      break;
    case Kernel::add_rows:
      add("add rows", add_trial(kRows, kWidth, kSeed));
      break;
    case Kernel::add_bias:
    case Kernel::scale_rows:
      add("bias and scale", columns_trial(kRows, kWidth, kSeed));
      break;
    case Kernel::copy_rows:
      add("copy rows", copy_trial(kRows, kWidth, true, kSeed));
      break;
    case Kernel::store_rows:
      add(fmt::format("store {}", name_of_kv(variant)),
          store_trial(cache_of(variant), kRows, false, kSeed));
      break;
    case Kernel::move_slots:
      add(fmt::format("move {}", name_of_kv(variant)), move_trial(cache_of(variant), kRows, kSeed));
      break;
    case Kernel::attend_f32:
      return attentions_of(KvKind::f32, variant != 0);
    case Kernel::attend_bf16:
      return attentions_of(KvKind::bf16, variant != 0);
    case Kernel::attend_int8:
      return attentions_of(KvKind::int8, variant != 0);
    case Kernel::merge_splits:
      break;
  }
  return trials;
}

void require_known_answers(Device& device, std::span<const Step> steps) {
  if (device.facts().kind == DeviceKind::host) return;
  const std::lock_guard lock(device.trying_);
  for (const Step& step : steps) {
    for (const std::uint32_t form : forms_of(step)) {
      if (device.tried_.contains({step.kernel, form})) continue;
      for (const auto& [what, trial] : trials_of(step.kernel, form)) {
        const std::string trouble = difference_from_host(device, trial);
        if (trouble.empty()) continue;
        throw Error("check device", device.facts().name,
                    fmt::format("its bits are not the processor's: {}: {} (outrider devices "
                                "--check tries all kernels)",
                                what, trouble));
      }
      device.tried_.emplace(step.kernel, form);
    }
  }
}

}  // namespace outrider::device
