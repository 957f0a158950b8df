// SPDX-License-Identifier: Apache-2.0
#include "server/answers/model_json.h"

#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "outrider/error.h"

namespace outrider::server {
namespace {

// A spec of each kind of rule that needs neither a file nor marks in the vocabulary.
constexpr std::string_view kRules[] = {"exact",
                                       "chow:alpha=0.3",
                                       "diff:alpha=0.3",
                                       "opt:alpha=0.3",
                                       "token-v1:alpha=0.3",
                                       "token-v2:alpha=0.3",
                                       "token-v3:alpha=0.3",
                                       "lossy:alpha=0.3",
                                       "lossy-greedy:alpha=0.3",
                                       "lenience:eps=0.5",
                                       "budget:kl=0.1",
                                       "bild-sampled:alpha=1",
                                       "typical",
                                       "bild",
                                       "fly"};

Json rules_of(const ServedModel& model, const std::string& drafter) {
  SpeculationOptions speculation = model.options().speculation;
  // A tree given for another drafter does not apply.
  if (drafter != model.options().drafters.front()) speculation.tree.clear();
  speculation.drafter = drafter;
  Json rules = Json::array();
  for (const std::string_view rule : kRules) {
    speculation.rule = rule;
    try {
      check_speculation(speculation);
    } catch (const Error&) {
      continue;
    }
    rules.push_back(rule.substr(0, rule.find(':')));
  }
  return rules;
}

Json entry(const std::string& name, std::time_t loaded_at, bool is_loaded) {
  Json json;
  json["id"] = name;
  json["object"] = "model";
  json["created"] = loaded_at;
  json["owned_by"] = "outrider";
  json["loaded"] = is_loaded;
  return json;
}

}  // namespace

Json model_json(const ServedModel& model) {
  const ServedOptions& options = model.options();
  Json drafters = Json::array();
  for (const std::string& drafter : options.drafters) {
    drafters.push_back({{"drafter", drafter}, {"rules", rules_of(model, drafter)}});
  }
  Json own;
  own["context"] = model.context();
  own["chat"] = model.has_chat_template();
  own["temperature"] = options.sampling.temperature;
  own["rule"] = options.speculation.rule;
  own["default_drafter"] = options.drafters.empty() ? "none" : options.drafters.front();
  own["drafters"] = std::move(drafters);
  Json json = entry(model.name(), model.loaded_at(), true);
  json["outrider"] = std::move(own);
  return json;
}

Json unloaded_model_json(const std::string& name) { return entry(name, 0, false); }

}  // namespace outrider::server
