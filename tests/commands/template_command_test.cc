// SPDX-License-Identifier: Apache-2.0
// `outrider template`: the prompt byte for byte, from a model or a file, and refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/models/cli_models.h"
#include "tests/support/run_program.h"

namespace outrider::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TemplateCommand : public ::testing::Test {
 protected:
  // A file in the folder of the models.
  static std::string file(const std::string& name, const std::string& text) {
    const fs::path path = CliModels::get().root() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
};

constexpr const char* kMessages =
    R"([{"role": "user", "content": "Hi \u00e9"}, {"role": "assistant", "content": " Yes\n"}])";

TEST_F(TemplateCommand, PrintsTheModelsPromptByteForByte) {
  const std::string messages = file("messages.json", kMessages);
  const ProgramRun run =
      run_program({"template", "--model", CliModels::get().chatty(), "--messages", messages});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "<|im_start|>user\nHi \xC3\xA9<|im_end|>\n<|im_start|>assistant\n Yes\n<|im_end|>\n"
            "<|im_start|>assistant\n");
  const ProgramRun piped =
      run_program({"template", "--model", CliModels::get().chatty(), "--messages", "-"},
                  {.standard_input = kMessages});
  EXPECT_EQ(piped.out, run.out);
}

TEST_F(TemplateCommand, TakesATemplateByItself) {
  const std::string text =
      file("a.jinja", "{{ tools|tojson }}{{ add_generation_prompt }}{{ messages|length }}\n");
  const std::string tools = file("tools.json", R"([{"b": 1.0, "a": null}])");
  const std::string messages = file("messages.json", kMessages);
  EXPECT_EQ(run_program({"template", "--template", text, "--messages", messages}).out, "nullTrue2");
  EXPECT_EQ(run_program({"template", "--template", text, "--messages", messages, "--tools", tools,
                         "--no-generation-prompt"})
                .out,
            R"([{"b": 1.0, "a": null}]False2)");
  const std::string context = file("context.json", R"({"messages": [1], "tools": "\u0000"})");
  EXPECT_EQ(run_program({"template", "--template", text, "--context", context}).out,
            R"("\u0000"1)");
}

TEST_F(TemplateCommand, RefusesInOneLine) {
  const std::string messages = file("messages.json", kMessages);
  const std::string refuses = file("no.jinja", "a\n{{ raise_exception('Never ' ~ 1) }}");
  struct Case {
    Words words;
    int status;
    std::string names;
  };
  const std::string chatty = CliModels::get().chatty();
  for (const Case& one : std::vector<Case>{
           {{"--template", refuses, "--messages", messages}, 1, "line 2: Never 1"},
           {{"--model", CliModels::get().target(), "--messages", messages}, 1, "chat template"},
           {{"--template", file("bad.jinja", "\n{% frob %}"), "--messages", messages}, 1, "frob"},
           {{"--model", chatty, "--messages", file("bad.json", "{}")}, 1, "messages"},
           {{"--model", chatty, "--context", file("bad.json", "[")}, 1, "JSON"},
           {{"--model", chatty, "--messages", messages, "--tools", file("bad.json", "7")},
            1,
            "tools"},
           {{"--model", chatty, "--messages", "nowhere.json"}, 1, "nowhere.json"},
           {{"--model", chatty}, 2, "--messages"},
           {{"--messages", messages}, 2, "--template"},
           {{"--model", chatty, "--template", refuses, "--messages", messages}, 2, "--template"},
           {{"--model", chatty, "--context", messages, "--tools", messages}, 2, "--messages"}}) {
    Words words = {"template"};
    words.insert(words.end(), one.words.begin(), one.words.end());
    const ProgramRun run = run_program(words);
    EXPECT_EQ(run.status, one.status) << run.err;
    EXPECT_THAT(run.err, HasSubstr(one.names));
    EXPECT_EQ(n_lines(run.err), 1) << run.err;
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(TemplateCommand, ChatShowsWhatItsTemplateRefuses) {
  const fs::path model = CliModels::get().root() / "refusing";
  fs::copy(CliModels::get().chatty(), model);
  std::ofstream(model / "chat_template.jinja")
      << "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
         "{{ messages[-1].content }}";
  const ProgramRun run =
      run_program({"chat", "--model", model.string(), "--system", "Be brief.", "--max-tokens", "2"},
                  {.standard_input = "hello\n"});
  EXPECT_EQ(run.status, 1);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(run.err, HasSubstr("No system role"));
  EXPECT_EQ(n_lines(run.err), 1) << run.err;
}

}  // namespace
}  // namespace outrider::test
