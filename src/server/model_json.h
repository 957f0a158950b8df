// A served model as /v1/models lists it.
#ifndef OUTRIDER_SERVER_MODEL_JSON_H_
#define OUTRIDER_SERVER_MODEL_JSON_H_

#include <string>

#include "server/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

// OpenAI's entry, with an extension field that says what requests may ask for:
//
//   "outrider": {"context": 2048, "chat": true, "temperature": 1, "rule": "exact",
//                "default_drafter": "suffix",
//                "drafters": [{"drafter": "suffix", "rules": ["exact", "typical", "fly"]}, ...]}
//
// `chat` says whether the model has a template, `rules` the kinds of rules that the drafter allows.
Json model_json(const ServedModel& model);
// The entry of a model that is loaded when it is asked for. "loaded" says which of the two it is.
Json unloaded_model_json(const std::string& name);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_MODEL_JSON_H_
