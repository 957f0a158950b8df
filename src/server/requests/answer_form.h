// SPDX-License-Identifier: Apache-2.0
// The form that a request demands of its answer: JSON, a schema, a regular expression, a grammar.
#ifndef OUTRIDER_SERVER_REQUESTS_ANSWER_FORM_H_
#define OUTRIDER_SERVER_REQUESTS_ANSWER_FORM_H_

#include <memory>

#include "outrider/grammar.h"
#include "server/requests/json_fields.h"

namespace outrider::server {

// Reads OpenAI's `response_format` (types text, json_object and json_schema, and as an extension
// regex with `pattern` and grammar with `grammar`), and llama-server's `json_schema` and `grammar`.
// Null: any text. Throws ApiError (400) for more than one of them, and for an invalid form, with
// the unsupported keyword.
std::shared_ptr<const Grammar> read_answer_form(JsonFields& body);

// The form of a schema in a request; `name` identifies it in errors. Throws ApiError (400).
std::shared_ptr<const Grammar> schema_form(const JsonFields& fields, std::string_view name,
                                           const Json& schema);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_REQUESTS_ANSWER_FORM_H_
