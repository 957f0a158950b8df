// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/frontier_settings.h"

#include <fmt/format.h>

#include <utility>

#include "base/spec.h"
#include "engine/speculation.h"
#include "eval/frontiers/sequential_cascade.h"
#include "eval/report_text.h"
#include "outrider/error.h"
#include "speculate/rules/make_rule.h"

namespace outrider::eval {
namespace {

// "oracle:diff,alpha=0.3" and back: the rules that a cascade's spec represents, with its kind.
std::vector<RuleSetting> expand_cascade(const std::string& text, std::span<const double> alphas) {
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  std::string rule = colon == std::string::npos ? std::string() : text.substr(colon + 1);
  if (rule.empty()) check_cascade(text);  // throws the error
  const std::size_t comma = rule.find(',');
  if (comma != std::string::npos) rule[comma] = ':';
  const auto under_kind = [&kind](std::string spec) {
    const std::size_t at = spec.find(':');
    if (at != std::string::npos) spec[at] = ',';
    return kind + ":" + spec;
  };
  std::vector<RuleSetting> settings = expand_rules(rule, alphas);
  for (RuleSetting& setting : settings) {
    setting.rule = under_kind(setting.rule);
    setting.family = under_kind(setting.family);
    check_cascade(setting.rule);
  }
  return settings;
}

bool is_greedy(const SamplingParams& sampling) {
  return sampling.temperature == 0 || sampling.top_k == 1;
}

// Whether a rule, or a cascade's rule, needs temperature 0.
bool needs_greedy(const FrontierSetting& setting) {
  if (!setting.sequential) {
    return make_verification(setting.rule.rule, "exact").acceptance->needs().greedy;
  }
  std::string rule = setting.rule.rule.substr(setting.rule.rule.find(':') + 1);
  const std::size_t comma = rule.find(',');
  if (comma != std::string::npos) rule[comma] = ':';
  return make_rule(rule)->needs().greedy;
}

}  // namespace

std::vector<FrontierSetting> frontier_settings(std::span<const RuleSetting> rules,
                                               std::string_view cascades,
                                               std::span<const double> alphas,
                                               std::span<const int> lengths,
                                               std::span<const SamplingParams> samplings) {
  std::vector<FrontierSetting> behind_any;
  for (const RuleSetting& rule : rules) {
    for (const int length : lengths) behind_any.push_back({.rule = rule, .length = length});
  }
  if (!cascades.empty()) {
    for (const std::string& text : split_specs(cascades, ',')) {
      for (RuleSetting& rule : expand_cascade(text, alphas)) {
        behind_any.push_back({.rule = std::move(rule), .sequential = true});
      }
    }
  }
  std::vector<FrontierSetting> settings;
  for (const SamplingParams& sampling : samplings) {
    for (FrontierSetting setting : behind_any) {
      if (needs_greedy(setting) && !is_greedy(sampling)) continue;
      setting.sampling = sampling;
      settings.push_back(std::move(setting));
    }
  }
  for (const FrontierSetting& setting : behind_any) {
    bool fits = !needs_greedy(setting);
    for (const SamplingParams& sampling : samplings) fits = fits || is_greedy(sampling);
    if (fits) continue;
    throw UsageError("measure frontier", setting.rule.rule, "temperature 0 among the temperatures",
                     "others alone");
  }
  return settings;
}

std::string name_of(const FrontierSetting& setting) {
  const std::string length = setting.sequential ? "" : fmt::format("-K{}", setting.length);
  return file_part(fmt::format("{}{}-{}", setting.rule.rule, length, name_of(setting.sampling)));
}

PairSize size_of_pair(const Model& target, const SpeculationOptions& speculation) {
  PairSize size{.target_parameters = target.summary().n_parameters};
  if (Spec::parse("drafter", speculation.drafter).name() == "model") {
    size.drafter_parameters = n_drafter_parameters(speculation);
  }
  return size;
}

}  // namespace outrider::eval
