// SPDX-License-Identifier: Apache-2.0
#include "server/requests/answer_form.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

#include "outrider/error.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

using Form = std::shared_ptr<const Grammar>;

// Twice OpenAI's limit on names and values in a schema. An enum of this size takes 0.17 s to
// compile on a Zen 4.
constexpr std::size_t kLongestForm_bytes = std::size_t{256} << 10;

// Compiles `text`; errors name the field.
template <typename Compile>
Form compiled(const JsonFields& fields, std::string_view name, const std::string& text,
              const Compile& compile) {
  if (text.size() > kLongestForm_bytes) {
    fields.refuse(name, fmt::format("at most {} bytes", kLongestForm_bytes),
                  std::to_string(text.size()));
  }
  try {
    return compile(text);
  } catch (const Error& error) {
    const std::string path = fields.path_of(name);
    throw ApiError(400, fmt::format("{}: {}", path, error.what()), path);
  }
}

Form response_format(JsonFields format) {
  const std::string type = format.text("type").value_or("text");
  Form form;
  if (type == "json_schema") {
    JsonFields named(format.require("json_schema"), format.path_of("json_schema"));
    named.accept({"name", "description", "strict"});
    form = schema_form(named, "schema", named.require("schema"));
    named.finish();
  } else if (type == "json_object") {
    const Json* const schema = format.find("schema");  // llama-server's field
    form = schema == nullptr ? Grammar::any_json_object() : schema_form(format, "schema", *schema);
  } else if (type == "regex") {
    const std::string pattern = format.require_text("pattern");
    form = compiled(format, "pattern", pattern, Grammar::from_regex);
  } else if (type == "grammar") {
    const std::string text = format.require_text("grammar");
    form = compiled(format, "grammar", text,
                    [](const std::string& gbnf) { return Grammar::from_gbnf(gbnf); });
  } else if (type != "text") {
    format.refuse("type", "text, json_object, json_schema, regex or grammar",
                  fmt::format("'{}'", type));
  }
  format.finish();
  return form;
}

}  // namespace

Form schema_form(const JsonFields& fields, std::string_view name, const Json& schema) {
  return compiled(fields, name, dumped(schema), Grammar::from_json_schema);
}

Form read_answer_form(JsonFields& body) {
  Form form;
  std::string_view said_by;
  const auto take = [&](std::string_view name, Form one) {
    if (one == nullptr) return;
    if (form != nullptr) {
      body.refuse(name, fmt::format("one form of the answer: {} gives it", said_by), "another");
    }
    form = std::move(one);
    said_by = name;
  };
  if (auto format = body.object("response_format")) {
    take("response_format", response_format(*format));
  }
  if (const Json* const schema = body.find("json_schema")) {
    take("json_schema", schema_form(body, "json_schema", *schema));
  }
  if (const auto text = body.text("grammar"); text && !text->empty()) {
    take("grammar", compiled(body, "grammar", *text,
                             [](const std::string& gbnf) { return Grammar::from_gbnf(gbnf); }));
  }
  return form;
}

}  // namespace outrider::server
