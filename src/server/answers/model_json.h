// SPDX-License-Identifier: Apache-2.0
// A served model's entry in /v1/models.
#ifndef OUTRIDER_SERVER_ANSWERS_MODEL_JSON_H_
#define OUTRIDER_SERVER_ANSWERS_MODEL_JSON_H_

#include <string>

#include "server/requests/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

// OpenAI's entry, with an extension field that lists what requests may use:
//
//   "outrider": {"context": 2048, "chat": true, "temperature": 1, "rule": "exact",
//                "default_drafter": "suffix",
//                "drafters": [{"drafter": "suffix", "rules": ["exact", "typical", "fly"]}, ...]}
//
// `chat` says whether the model has a template, `rules` lists the kinds of rules that the drafter
// supports.
Json model_json(const ServedModel& model);
// The entry of a model that is loaded on demand and is not loaded now; its field "loaded" says so.
Json unloaded_model_json(const std::string& name);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_ANSWERS_MODEL_JSON_H_
