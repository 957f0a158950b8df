// How a text is to be generated, as the fields of a request say it.
#ifndef OUTRIDER_SERVER_GENERATION_FIELDS_H_
#define OUTRIDER_SERVER_GENERATION_FIELDS_H_

#include <cstdint>
#include <optional>

#include "outrider/generate.h"
#include "server/json_fields.h"
#include "server/served_model.h"

namespace outrider::server {

struct GenerationFields {
  GenerateOptions options;
  SpeculationOptions speculation;
  int n_choices = 1;
  int slot = -1;  // llama-server's id_slot; -1: none
};

// Choices of one request at most: each is a text of the batch.
inline constexpr int kMostChoices = 64;

// Reads what OpenAI's endpoints have in common, llama-server's and vLLM's names for what those
// lack, and `speculation`. Without a seed the text's is drawn at random. Throws ApiError (400).
GenerationFields read_generation_fields(JsonFields& body, const ServedModel& model);

// `speculation`: false, or an object with drafter, rule, tree, verify and adaptive. A request with
// a seed is verified by "coupled" unless it, or the server, says otherwise.
SpeculationOptions read_speculation(JsonFields& body, const ServedModel& model, bool has_seed);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_GENERATION_FIELDS_H_
