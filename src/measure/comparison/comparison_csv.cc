// SPDX-License-Identifier: Apache-2.0
// A comparison of methods as a table for other programs: RFC 4180, a row per method, category and
// temperature. Unknown figures are empty.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>

#include "outrider/method_report.h"

namespace outrider {
namespace {

// A row of fields, each with its name.
class Row {
 public:
  void add(std::string_view name, std::string_view field) {
    if (!is_first_) {
      names_ += ',';
      fields_ += ',';
    }
    names_ += name;
    fields_ += field;
    is_first_ = false;
  }
  void add_text(std::string_view name, std::string_view text) {
    std::string field = "\"";
    for (const char c : text) {
      if (c == '"') field += c;
      field += c;
    }
    add(name, field + "\"");
  }
  void add_number(std::string_view name, double number) {
    add(name, std::isfinite(number) ? fmt::format("{}", number) : std::string());
  }
  void add_estimate(const std::string& name, const Estimate& estimate) {
    add_number(name, estimate.value);
    add_number(name + "_low", estimate.low);
    add_number(name + "_high", estimate.high);
  }
  const std::string& names() const { return names_; }
  const std::string& fields() const { return fields_; }

 private:
  std::string names_;
  std::string fields_;
  bool is_first_ = true;
};

// Draft places with columns: n-alphas go to 4-alpha, the acceptance at place 5.
constexpr std::size_t kPlaces = 5;

Row row_of(const MethodFigures& figures, const CompareOptions& options) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  constexpr Estimate kNothing = {.value = kUnknown, .low = kUnknown, .high = kUnknown};
  Row row;
  row.add_text("method", options.methods[figures.method].name);
  row.add_text("category", figures.category.empty() ? "all" : figures.category);
  row.add_number("temperature", figures.temperature);
  row.add_number("prompts", figures.n_prompts);
  row.add_estimate("speedup", figures.speedup);
  row.add_estimate("request_speedup", figures.request_speedup);
  row.add_estimate("first_token_ratio", figures.first_token_ratio);
  row.add_estimate("tokens_per_second", figures.tokens_per_second);
  row.add_estimate("tau", figures.tau);
  row.add_estimate("draft_share", figures.draft_share);
  row.add_estimate("target_share", figures.target_share);
  row.add_estimate("verify_share", figures.verify_share);
  row.add_estimate("rest_share", figures.rest_share);
  row.add("same_texts",
          figures.promises_same_text ? fmt::format("{}", figures.n_same) : std::string());
  for (std::size_t place = 0; place < kPlaces; ++place) {
    row.add_estimate(fmt::format("acceptance_{}", place + 1),
                     place < figures.places.size() ? figures.places[place].acceptance : kNothing);
  }
  const MethodBounds bounds = figures.bounds.value_or(MethodBounds{.level_cost = kNothing,
                                                                   .oracle = kNothing,
                                                                   .perfect = kNothing,
                                                                   .perfect_length = -1,
                                                                   .free = kNothing,
                                                                   .oracle_share = kNothing});
  row.add_estimate("level_cost", bounds.level_cost);
  row.add_estimate("oracle_length", bounds.oracle);
  row.add_estimate("perfect_drafter", bounds.perfect);
  row.add("perfect_length",
          bounds.perfect_length < 0 ? std::string() : fmt::format("{}", bounds.perfect_length));
  row.add_estimate("free_drafting", bounds.free);
  row.add_estimate("oracle_share", bounds.oracle_share);
  return row;
}

}  // namespace

std::string comparison_csv(const MethodComparison& comparison,
                           std::span<const MethodFigures> figures) {
  constexpr const char* kNewline = "\r\n";
  std::string text;
  for (const MethodFigures& one : figures) {
    const Row row = row_of(one, comparison.options);
    if (text.empty()) text += row.names() + kNewline;
    text += row.fields() + kNewline;
  }
  return text;
}

}  // namespace outrider
