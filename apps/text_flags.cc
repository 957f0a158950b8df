#include "text_flags.h"

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
         "A file of UTF-8 text, or a folder of such files, with its sub-folders but without names "
         "that begin with a dot; may be given several times (required)")
      ->type_name("PATH")
      ->expected(1)
      ->take_all()
      ->group(group)
      ->required();
}

}  // namespace outrider::cli
