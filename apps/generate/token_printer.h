// SPDX-License-Identifier: Apache-2.0
// Streams committed tokens to standard output, plain or with their origin.
#ifndef OUTRIDER_APPS_GENERATE_TOKEN_PRINTER_H_
#define OUTRIDER_APPS_GENERATE_TOKEN_PRINTER_H_

#include <functional>
#include <string>
#include <string_view>

#include "apps/cli/interrupt.h"
#include "apps/cli/terminal.h"
#include "outrider/generate.h"

namespace outrider::cli {

enum class TokenStyle {
  plain,   // only the text
  colour,  // accepted green, corrected yellow, bonus cyan
  marks,   // the same in brackets: [accepted] <corrected> {bonus}
};

// `show_draft`: whether origins are shown; `colour_mode` as for use_colour().
TokenStyle choose_style(bool show_draft, std::string_view colour_mode);

// One line that explains the style; empty for plain.
std::string legend(TokenStyle style);

class TokenPrinter {
 public:
  // If standard output fails, ends the text through `interrupt`; call output.check() later.
  TokenPrinter(TokenStyle style, Output& output, Interrupt& interrupt);

  // For GenerateOptions::on_token. The callback keeps a reference to this object.
  std::function<void(const TokenEvent&)> callback();
  // Prints the rest of a text (held back until its end), then a line end.
  void finish(std::string_view rest = {});

  // The number of printed bytes of the text.
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

// Whether a text ended because the context was full, and not at a requested end.
bool was_cut_off_by_context(const GenerateResult& result, const GenerateOptions& options);
inline constexpr const char* kCutOffByContext = "(cut off: the context is full)";

// The amount of generated text and the speed, on one line, for standard error.
std::string summary_line(const GenerateResult& result, bool speculative);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_GENERATE_TOKEN_PRINTER_H_
