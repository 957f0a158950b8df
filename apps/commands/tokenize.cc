// SPDX-License-Identifier: Apache-2.0
// outrider tokenize: text to ids and back.
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/flag_values.h"
#include "apps/cli/terminal.h"
#include "apps/cli/warnings.h"
#include "apps/commands.h"
#include "apps/flags/model_flags.h"
#include "outrider/error.h"
#include "outrider/tokenizer.h"

namespace outrider::cli {
namespace {

struct TokenizeFlags {
  std::string model;
  std::string text;
  std::string text_file;
  std::string decode;
  bool no_special = false;
  bool ids = false;
  bool keep_special = false;
};

// Ids separated by blanks, commas or line ends.
std::vector<TokenId> parse_ids(std::string_view text) {
  std::vector<TokenId> ids;
  constexpr std::string_view kSeparators = " ,\t\r\n";
  for (;;) {
    const std::size_t begin = text.find_first_not_of(kSeparators);
    if (begin == std::string_view::npos) return ids;
    text.remove_prefix(begin);
    const std::string_view word = text.substr(0, text.find_first_of(kSeparators));
    TokenId id = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      throw UsageError("read flags", "--decode", "token ids separated by blanks", word);
    }
    ids.push_back(id);
    text.remove_prefix(word.size());
  }
}

std::string show_ids(const std::vector<TokenId>& ids) {
  return fmt::format("{}\n", fmt::join(ids, " "));
}

std::string show_pieces(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string lines;
  for (const TokenId id : ids) {
    fmt::format_to(std::back_inserter(lines), "{:>7}  {}\n", id, one_line(tokenizer.piece(id)));
  }
  return lines;
}

int run(const TokenizeFlags& flags, bool decode, bool from_file) {
  std::vector<TokenId> ids;
  std::string text = flags.text;
  if (decode) {
    ids = parse_ids(flags.decode == "-" ? read_text("-") : flags.decode);
  } else if (from_file) {
    text = read_text(flags.text_file);
  } else {
    require_text(text, "--text");
  }
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(flags.model);
  Output output;
  if (decode) {
    output.write(tokenizer->decode(ids, flags.keep_special) + "\n");
  } else {
    ids = tokenizer->encode(text, !flags.no_special);
    output.write(flags.ids ? show_ids(ids) : show_pieces(*tokenizer, ids));
  }
  output.check();
  return 0;
}

}  // namespace

CLI::App* add_tokenize(CLI::App& program, Run& run_command) {
  CLI::App* app = program.add_subcommand("tokenize", "Show a text's tokens, or tokens' text")
                      ->group("Commands");
  const auto flags = std::make_shared<TokenizeFlags>();
  add_model_path(*app, flags->model);

  constexpr const char* kInput = "Input (one of the three)";
  CLI::Option* text =
      add_text(*app, "--text", flags->text, "TEXT", "The text to split")->group(kInput);
  CLI::Option* text_file = add_path(*app, "--text-file", flags->text_file, "FILE",
                                    "A file with that text; - is standard input")
                               ->group(kInput)
                               ->excludes(text);
  CLI::Option* decode = add_text(*app, "--decode", flags->decode, "IDS",
                                 "The way back: ids separated by blanks; - reads standard input")
                            ->group(kInput)
                            ->excludes(text)
                            ->excludes(text_file);

  constexpr const char* kForm = "Form";
  app->add_flag("--ids", flags->ids, "Print ids on one line (default: one token a line, spelled)")
      ->group(kForm)
      ->excludes(decode);
  app->add_flag("--no-special", flags->no_special,
                "Do not add the model's own special tokens, a beginning-of-sequence for example")
      ->group(kForm)
      ->excludes(decode);
  app->add_flag("--keep-special", flags->keep_special, "Spell special tokens out when decoding")
      ->group(kForm)
      ->needs(decode);
  app->footer(
      "Examples:\n"
      "  outrider tokenize --model SmolLM2-135M-Instruct --text \"Once upon a time\"\n"
      "  outrider tokenize --model model.gguf --no-special --ids --text-file - < story.txt\n"
      "  outrider tokenize --model model.gguf --decode \"9906 1917\"\n");

  run_command = [flags, text, text_file, decode] {
    if (text->count() + text_file->count() + decode->count() == 0) {
      throw UsageError("read flags", "input", "--text TEXT, --text-file FILE or --decode IDS",
                       "none of them");
    }
    return run(*flags, decode->count() > 0, text_file->count() > 0);
  };
  return app;
}

}  // namespace outrider::cli
