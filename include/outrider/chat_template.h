// SPDX-License-Identifier: Apache-2.0
// Chat templates: the Jinja programs, published with models, that turn a conversation into a
// prompt.
#ifndef OUTRIDER_CHAT_TEMPLATE_H_
#define OUTRIDER_CHAT_TEMPLATE_H_

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace outrider {

namespace jinja {
struct ParsedTemplate;
}

// Returns the time for a template that asks for it (strftime_now). It is called on the rendering
// thread.
using TemplateClock = std::function<std::tm()>;
// The local time of the machine.
std::tm local_time();

// A parsed template. It renders what Jinja2 3.1 renders as set up by Hugging Face transformers:
// trim_blocks, lstrip_blocks, break and continue, {% generation %} blocks, a tojson that escapes
// nothing, raise_exception, strftime_now, and a sandbox in which values are immutable.
// docs/models.md lists the supported features. Immutable and thread-safe; copies share the parsed
// template.
class ChatTemplate {
 public:
  // `text` is the template itself. Throws Error with the line if it does not parse, is not UTF-8,
  // or uses an unknown statement.
  explicit ChatTemplate(std::string_view text);

  // `variables` is a JSON object of all variables (messages, add_generation_prompt, bos_token,
  // ...). The order of its keys is kept.
  //
  // Throws Error where
  // - `variables` is not a JSON object;
  // - the template calls raise_exception (the message is the template's);
  // - the template does what Jinja2 refuses, or uses an unknown filter, test or method (with its
  //   name and line);
  // - rendering exceeds 50 million steps, 64 MiB of text, 1 GiB of values, 1000 nested evaluations,
  //   or 64-bit integers.
  std::string render(std::string_view variables, const TemplateClock& clock = local_time) const;

 private:
  std::shared_ptr<const jinja::ParsedTemplate> parsed_;
};

}  // namespace outrider

#endif  // OUTRIDER_CHAT_TEMPLATE_H_
