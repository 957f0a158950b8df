// Chat templates: the Jinja programs that models are published with, which turn a conversation into
// the text the model was trained on.
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

// Gives the time that a template may ask for (strftime_now). It must be safe to call from the
// thread that renders.
using TemplateClock = std::function<std::tm()>;
// The local time of the machine.
std::tm local_time();

// A template, read once. Renders what Jinja2 3.1 renders the way Hugging Face transformers sets it
// up: trim_blocks, lstrip_blocks, break and continue, {% generation %} blocks, a tojson that
// escapes nothing, raise_exception, strftime_now, and a sandbox in which no value is changed.
// docs/models.md lists what is known. Immutable; all methods are thread-safe; copies share the
// template.
class ChatTemplate {
 public:
  // `text` is the template itself. Throws Error naming the line where it is none, is not UTF-8, or
  // uses a statement that is not known.
  explicit ChatTemplate(std::string_view text);

  // `variables` is a JSON object of all variables: messages, add_generation_prompt, bos_token and
  // whatever else the template reads. The order of its keys is kept.
  //
  // Throws Error where `variables` is no JSON object; where the template calls raise_exception (the
  // message is the template's); where it does what Jinja2 refuses, or uses a filter, test or method
  // that is not known (naming it and the line); and where it costs too much: more than 50 million
  // steps, 64 MiB of text, 1 GiB of values, 1000 nested evaluations, or integers beyond 64 bits.
  std::string render(std::string_view variables, const TemplateClock& clock = local_time) const;

 private:
  std::shared_ptr<const jinja::ParsedTemplate> parsed_;
};

}  // namespace outrider

#endif  // OUTRIDER_CHAT_TEMPLATE_H_
