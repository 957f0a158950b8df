// SPDX-License-Identifier: Apache-2.0
#include "apps/generate/token_printer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace outrider::cli {
namespace {

struct Decoration {
  std::string_view before, after;
};

Decoration decoration(TokenStyle style, TokenOrigin origin) {
  if (style == TokenStyle::plain || origin == TokenOrigin::plain) return {"", ""};
  const bool colour = style == TokenStyle::colour;
  switch (origin) {
    case TokenOrigin::accepted:
      return colour ? Decoration{"\x1b[32m", "\x1b[0m"} : Decoration{"[", "]"};
    case TokenOrigin::corrected:
      return colour ? Decoration{"\x1b[33m", "\x1b[0m"} : Decoration{"<", ">"};
    case TokenOrigin::bonus:
      return colour ? Decoration{"\x1b[36m", "\x1b[0m"} : Decoration{"{", "}"};
    case TokenOrigin::plain:
      break;
  }
  return {"", ""};
}

}  // namespace

TokenStyle choose_style(bool show_draft, std::string_view colour_mode) {
  if (!show_draft) return TokenStyle::plain;
  return use_colour(colour_mode, STDOUT_FILENO) ? TokenStyle::colour : TokenStyle::marks;
}

std::string legend(TokenStyle style) {
  if (style == TokenStyle::plain) return "";
  if (style == TokenStyle::colour && !is_terminal(STDERR_FILENO)) {
    return "green: accepted draft  yellow: corrected by the target  cyan: bonus token";
  }
  std::string line;
  for (const auto& [origin, name] : {std::pair{TokenOrigin::accepted, "accepted draft"},
                                     std::pair{TokenOrigin::corrected, "corrected by the target"},
                                     std::pair{TokenOrigin::bonus, "bonus token"}}) {
    const Decoration around = decoration(style, origin);
    line += fmt::format("{}{}{}{}", line.empty() ? "" : "  ", around.before, name, around.after);
  }
  return line;
}

TokenPrinter::TokenPrinter(TokenStyle style, Output& output, Interrupt& interrupt)
    : style_(style), output_(&output), interrupt_(&interrupt), safe_(is_terminal(STDOUT_FILENO)) {}

std::function<void(const TokenEvent&)> TokenPrinter::callback() {
  return [this](const TokenEvent& event) { print(event); };
}

void TokenPrinter::finish(std::string_view rest) {
  write(rest, TokenOrigin::plain);
  output_->write("\n");
}

void TokenPrinter::print(const TokenEvent& event) {
  write(event.text, event.origin);
  if (output_->failed()) interrupt_->stop();
}

void TokenPrinter::write(std::string_view text, TokenOrigin origin) {
  if (text.empty()) return;
  n_bytes_ += text.size();
  const Decoration around = decoration(style_, origin);
  std::string decorated(around.before);
  decorated += safe_ ? without_controls(text) : text;
  decorated += around.after;
  // A single write, so that no colour remains whenever the program is stopped.
  output_->write(decorated);
}

bool was_cut_off_by_context(const GenerateResult& result, const GenerateOptions& options) {
  return result.finish_reason == FinishReason::length &&
         std::cmp_less(result.ids.size(), options.max_tokens);
}

std::string summary_line(const GenerateResult& result, bool speculative) {
  const GenerateStatistics& statistics = result.statistics;
  std::string line =
      fmt::format("{} tokens, {:.1f} tokens/s", statistics.emitted, statistics.tokens_per_second());
  if (speculative) {
    line +=
        fmt::format(", tau {:.2f}, acceptance {:.1f}% ({} of {} drafted)", statistics.tau(),
                    100 * statistics.acceptance_rate(), statistics.accepted, statistics.drafted);
  }
  return line;
}

}  // namespace outrider::cli
