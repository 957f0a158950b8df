// SPDX-License-Identifier: Apache-2.0
#include "device/trials/check.h"

#include <fmt/format.h>

#include <utility>

#include "device/trials/attend_trial.h"
#include "device/trials/cache_trials.h"
#include "device/trials/row_trials.h"
#include "device/trials/trials.h"
#include "outrider/error.h"

namespace outrider::device {
namespace {

// Few enough to take a software device some milliseconds. An fma that is not fused gets two thirds
// of them wrong; a division with an error of 2.5 units in the last place at least one in ten.
constexpr int kRandomOperands = 4096;
constexpr std::uint32_t kSeed = 20240607;

CheckResult result_of(Device& device, std::string what, const Trial& trial) {
  CheckResult result{.what = std::move(what), .trouble = {}};
  try {
    result.trouble = difference_from_host(device, trial);
  } catch (const Error& error) {
    result.trouble = error.what();
  }
  return result;
}

}  // namespace

bool gives_known_answers(Device& device, Function function) {
  return difference_from_host(device, arithmetic_trial(function, kRandomOperands, kSeed)).empty();
}

std::vector<CheckResult> check_device(Device& device) {
  constexpr std::pair<const char*, Function> kFunctions[] = {
      {"product", Function::native_multiply},
      {"sum", Function::native_add},
      {"fused multiply-add", Function::fused},
      {"division", Function::divide},
      {"square root", Function::root},
      {"exponential", Function::exponential},
      {"exponential of negative numbers", Function::exponential_of_negative},
      {"rounding to even", Function::round_even},
      {"from f16", Function::from_f16},
      {"to f16", Function::to_f16},
      {"from bf16", Function::from_bf16},
      {"to bf16", Function::to_bf16},
  };
  std::vector<CheckResult> results;
  for (const auto& [what, function] : kFunctions) {
    results.push_back(result_of(device, what, arithmetic_trial(function, kRandomOperands, kSeed)));
  }
  constexpr int kDepth = 320;
  for (const TrialRows& rows : {TrialRows{1, 1}, TrialRows{5, 8}}) {
    const auto with_rows = [&](const char* kernel) {
      return rows.n == 1 ? fmt::format("{}, 1 row", kernel)
                         : fmt::format("{}, {} rows", kernel, rows.n);
    };
    using kernels::WeightKind;
    results.push_back(
        result_of(device, with_rows("quantize rows"), quantize_trial(rows, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("product int8"),
                                product_trial(WeightKind::int8, rows, 40, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("product int4"),
                                product_trial(WeightKind::int4, rows, 40, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("product int8 in parts"),
                                product_parts_trial(WeightKind::int8, rows, 40, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("product int4 in parts"),
                                product_parts_trial(WeightKind::int4, rows, 40, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("rms norm"), norm_trial(rows, kDepth, kSeed)));
    results.push_back(
        result_of(device, with_rows("layer norm"), layer_norm_trial(rows, kDepth, true, kSeed)));
    results.push_back(
        result_of(device, with_rows("soft cap"), cap_trial(rows, kDepth, 1.5F, kSeed)));
    results.push_back(
        result_of(device, with_rows("apply_rope"), apply_rope_trial(rows, 3, 32, kSeed)));
    results.push_back(result_of(device, with_rows("silu"), gate_trial(rows, kDepth, kSeed)));
    results.push_back(result_of(device, with_rows("gelu"),
                                gate_trial(rows, kDepth, kSeed, GateActivation::gelu_tanh)));
    results.push_back(result_of(device, with_rows("gelu by erf"),
                                gate_trial(rows, kDepth, kSeed, GateActivation::gelu_erf)));
    results.push_back(result_of(device, with_rows("activation"),
                                activate_trial(rows, kDepth, GateActivation::gelu_tanh, kSeed)));
    results.push_back(
        result_of(device, with_rows("norm of heads"), pieces_trial(rows, 3, 40, false, kSeed)));
    results.push_back(result_of(device, with_rows("add rows"), add_trial(rows, kDepth, kSeed)));
    results.push_back(
        result_of(device, with_rows("bias and scale"), columns_trial(rows, kDepth, kSeed)));
    results.push_back(
        result_of(device, with_rows("copy rows"), copy_trial(rows, kDepth, true, kSeed)));
    results.push_back(
        result_of(device, with_rows("largest of rows"), best_trial(rows, 3 * kDepth, kSeed)));
    const AttendTrialShape shape = {.n_heads = 4, .n_kv_heads = 2, .head_dim = 40, .n_keys = 1100};
    using kernels::KvKind;
    for (const auto& [name, kv] : {std::pair("f32", KvKind::f32), std::pair("bf16", KvKind::bf16),
                                   std::pair("int8", KvKind::int8)}) {
      const CacheShape cache = {
          .kv = kv, .n_kv_heads = 2, .head_dim = 40, .first_head = 1, .heads_of_row = 4};
      const char* const kind = name;  // clang 14 captures no structured binding
      const auto of_kind = [&](const char* what) {
        return with_rows(fmt::format("{} {}", what, kind).c_str());
      };
      results.push_back(
          result_of(device, of_kind("attention"), attend_trial(kv, rows, shape, kSeed)));
      AttendTrialShape with_cap = shape;
      with_cap.softcap = 2;
      results.push_back(
          result_of(device, of_kind("capped attention"), attend_trial(kv, rows, with_cap, kSeed)));
      AttendTrialShape in_parts = shape;
      in_parts.n_parts = 2;
      results.push_back(result_of(device, of_kind("attention in parts"),
                                  attend_trial(kv, rows, in_parts, kSeed)));
      results.push_back(
          result_of(device, of_kind("store"), store_trial(cache, rows, false, kSeed)));
      results.push_back(result_of(device, of_kind("move"), move_trial(cache, rows, kSeed)));
    }
  }
  return results;
}

}  // namespace outrider::device
