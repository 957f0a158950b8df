// SPDX-License-Identifier: Apache-2.0
// Reads from a request's fields how a text is to be generated.
#ifndef OUTRIDER_SERVER_REQUESTS_GENERATION_FIELDS_H_
#define OUTRIDER_SERVER_REQUESTS_GENERATION_FIELDS_H_

#include <cstdint>
#include <optional>

#include "outrider/generate.h"
#include "server/requests/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

struct GenerationFields {
  GenerateOptions options;
  SpeculationOptions speculation;
  int n_choices = 1;
  int slot = -1;  // llama-server's id_slot; -1: none
};

// Limit of a request's choices: each is a text of the batch.
inline constexpr int kMaxChoices = 64;

// Reads the fields that OpenAI's endpoints share, further ones under llama-server's and vLLM's
// names, and `speculation`. Without a seed, a random one is drawn. Throws ApiError (400).
GenerationFields read_generation_fields(JsonFields& body, const ServedModel& model);

// `speculation`: false, or an object with drafter, rule, tree, verify and adaptive. A request with
// a seed is verified by "coupled" unless the request or the server says otherwise.
SpeculationOptions read_speculation(JsonFields& body, const ServedModel& model, bool has_seed);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_GENERATION_FIELDS_H_
