// Streams tokens to standard output as they are committed, plain or showing who wrote them.
#ifndef OUTRIDER_APPS_TOKEN_PRINTER_H_
#define OUTRIDER_APPS_TOKEN_PRINTER_H_

#include <functional>
#include <string>
#include <string_view>

#include "interrupt.h"
#include "outrider/generate.h"
#include "terminal.h"

namespace outrider::cli {

enum class TokenStyle {
  plain,   // the text, nothing else
  colour,  // accepted green, corrected yellow, bonus cyan
  marks,   // the same in brackets, where colours cannot be: [accepted] <corrected> {bonus}
};

// `show_draft`: whether origins are shown at all; `colour_mode` as for use_colour().
TokenStyle choose_style(bool show_draft, std::string_view colour_mode);

// One line that explains the style; empty for plain.
std::string legend(TokenStyle style);

class TokenPrinter {
 public:
  // When standard output fails the text is ended through `interrupt`; ask output.check() later.
  TokenPrinter(TokenStyle style, Output& output, Interrupt& interrupt);

  // For GenerateOptions::on_token. Holds a reference to this.
  std::function<void(const TokenEvent&)> callback();
  // The rest of a text (held back until its end), then a line end.
  void finish(std::string_view rest = {});

  // How much text was printed, in bytes of the text itself.
  std::size_t n_bytes() const { return n_bytes_; }

 private:
  void print(const TokenEvent& event);
  void write(std::string_view text, TokenOrigin origin);

  TokenStyle style_;
  Output* output_;
  Interrupt* interrupt_;
  bool safe_;  // escape control characters: the output is a terminal
  std::size_t n_bytes_ = 0;
};

// Whether a text ended for want of room, not where it was asked to.
bool was_cut_off_by_context(const GenerateResult& result, const GenerateOptions& options);
inline constexpr const char* kCutOffByContext = "(cut off: the context is full)";

// What was generated and how fast, on one line, for standard error.
std::string summary_line(const GenerateResult& result, bool speculative);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TOKEN_PRINTER_H_
