// SPDX-License-Identifier: Apache-2.0
#include "chat_template/render.h"

#include <fmt/format.h>

#include <ctime>

#include "chat_template/functions/globals.h"
#include "chat_template/interpreter.h"
#include "chat_template/parsing/parser.h"
#include "chat_template/values/characters.h"
#include "chat_template/values/json_text.h"
#include "outrider/error.h"

namespace outrider {
namespace jinja {
namespace {

constexpr const char* kRead = "read chat template";
constexpr const char* kRender = "render chat template";

// Constants are at most as long as the template, and parsing costs no steps.
constexpr Limits kLimitsOfConstants{};

}  // namespace

ParsedTemplate::ParsedTemplate(std::string_view text) : heap(kLimitsOfConstants) {
  if (const std::size_t bad = find_bad_byte(text); bad != std::string_view::npos) {
    throw Error(kRead, "template", "UTF-8 text", fmt::format("another byte at {}", bad));
  }
  try {
    block = parse_template(text, heap);
  } catch (const Problem& problem) {
    throw Error(kRead, "template", problem.text);
  }
}

Rendering render(const ParsedTemplate& parsed, std::string_view variables,
                 const TemplateClock& clock, const Limits& limits) {
  Heap heap(limits);
  Value given;
  try {
    given = read_json(variables, heap, kRender, "variables");
  } catch (const Problem& problem) {
    throw Error(kRender, "variables", problem.text);
  }
  if (!given.is_dict()) {
    throw Error(kRender, "variables", "a JSON object", std::string(type_name(given)));
  }
  Interpreter interpreter(given, clock, heap);
  try {
    std::string text = interpreter.run(parsed.block);
    return {.text = std::move(text), .n_steps = heap.n_steps()};
  } catch (const Problem& problem) {
    throw Error(kRender, fmt::format("line {}", interpreter.line()), problem.text);
  } catch (const Refusal& refusal) {
    throw Error(kRender, fmt::format("line {}", interpreter.line()), refusal.message);
  }
}

}  // namespace jinja

std::tm local_time() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

ChatTemplate::ChatTemplate(std::string_view text)
    : parsed_(std::make_shared<const jinja::ParsedTemplate>(text)) {}

std::string ChatTemplate::render(std::string_view variables, const TemplateClock& clock) const {
  return jinja::render(*parsed_, variables, clock, {}).text;
}

}  // namespace outrider
