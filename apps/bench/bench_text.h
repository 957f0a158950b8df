// SPDX-License-Identifier: Apache-2.0
// Measured values as text and as JSON.
#ifndef OUTRIDER_APPS_BENCH_BENCH_TEXT_H_
#define OUTRIDER_APPS_BENCH_BENCH_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

#include "outrider/measure.h"
#include "outrider/model.h"

namespace outrider::cli {

using Json = nlohmann::ordered_json;

// 0.0741 -> "74.1 ms"; at least three digits, microseconds to seconds.
std::string show_duration(double seconds);

// "seconds", "min_seconds" and "max_seconds".
void put_seconds(Json& object, const Spread& seconds);

// The model's description in every measurement: path, kernels, threads, types.
Json describe(const Model& model);
// The same as a line of text.
std::string describe_line(const Model& model, int context);

std::string dump(const Json& object);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_BENCH_BENCH_TEXT_H_
