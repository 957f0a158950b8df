// SPDX-License-Identifier: Apache-2.0
#include "apps/flags/text_flags.h"

#include <fmt/format.h>

#include "apps/cli/flag_values.h"
#include "apps/cli/help_format.h"
#include "apps/flags/sampling_flags.h"
#include "outrider/error.h"

namespace outrider::cli {

void add_text_paths(CLI::App& app, std::vector<std::filesystem::path>& texts,
                    const std::string& group) {
  app.add_option_function<std::vector<std::string>>(
         "--text",
         [&texts](const std::vector<std::string>& given) {
           for (const std::string& text : given) {
             if (text.empty()) throw UsageError("read flags", "--text", "a path", "an empty text");
           }
           texts.assign(given.begin(), given.end());
         },
         "A file or folder of UTF-8 text (required). Of folders all files and sub-folders but "
         "those whose names begin with a dot; may be given several times")
      ->type_name("PATH")
      ->expected(1)
      ->take_all()
      ->group(group)
      ->required();
}

void add_continued_texts(CLI::App& app, ContinuedTexts& texts, int min_tokens) {
  constexpr const char* kGroup = "On what";
  add_text_paths(app, texts.paths, kGroup);
  add_filled_text(app, "--separator", texts.separator, "TEXT", "a text",
                  "What stands between the documents of a file (default: a file is one document)")
      ->group(kGroup);
  add_integer(app, "--texts", texts.count, 1,
              fmt::format("Beginnings of it to continue (default: {})", texts.count))
      ->group(kGroup);
  add_integer(app, "--prompt-tokens", texts.prompt_tokens, 1,
              fmt::format("Tokens of each beginning (default: {})", texts.prompt_tokens))
      ->group(kGroup);
  add_integer(app, "-n,--max-tokens", texts.max_tokens, min_tokens,
              fmt::format("Tokens each is continued by (default: {})", texts.max_tokens))
      ->group(kGroup);
  add_transform_flags(app, texts.sampling);
  show_usual(app, {"--text", "--texts", "--max-tokens", "--temperature"});
}

}  // namespace outrider::cli
