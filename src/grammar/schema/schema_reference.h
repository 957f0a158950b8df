// SPDX-License-Identifier: Apache-2.0
// References within one JSON Schema document.
#ifndef OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_REFERENCE_H_
#define OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_REFERENCE_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace outrider {

// The target of `$ref`: "#" is the document, "#/a/b" a place in it, with percent signs decoded.
// Null: there is no such place, or the reference leads out of the document. Pure; thread-safe.
const nlohmann::ordered_json* referred_schema(const nlohmann::ordered_json& document,
                                              std::string_view reference);

// The reference of a member of the target of `reference`.
std::string reference_of_member(std::string_view reference, std::string_view name);

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_SCHEMA_SCHEMA_REFERENCE_H_
