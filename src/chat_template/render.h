// SPDX-License-Identifier: Apache-2.0
// A template with its limits: the implementation of ChatTemplate, also for tests and fuzzing.
#ifndef OUTRIDER_CHAT_TEMPLATE_RENDER_H_
#define OUTRIDER_CHAT_TEMPLATE_RENDER_H_

#include <string>
#include <string_view>

#include "chat_template/parsing/syntax.h"
#include "outrider/chat_template.h"

namespace outrider::jinja {

struct ParsedTemplate {
  // Throws as ChatTemplate's constructor does.
  explicit ParsedTemplate(std::string_view text);

  Heap heap;  // of the constants; never changed again
  Block block;
};

struct Rendering {
  std::string text;
  std::int64_t n_steps;  // see Limits
};

// Throws as ChatTemplate::render does. Thread-safe.
Rendering render(const ParsedTemplate& parsed, std::string_view variables,
                 const TemplateClock& clock, const Limits& limits);

}  // namespace outrider::jinja

#endif  // OUTRIDER_CHAT_TEMPLATE_RENDER_H_
