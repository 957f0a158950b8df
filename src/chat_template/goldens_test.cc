// SPDX-License-Identifier: Apache-2.0
// Compares templates of our own with jinja2 3.1.6 (tests/golden/make/make_template_goldens.py), and
// those of published models with recorded renderings.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "outrider/chat_template.h"
#include "outrider/error.h"
#include "tests/support/goldens/golden_time.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// The rendering equals the expected one, or fails if an error is expected; errors of
// raise_exception must have its message.
void expect_rendering(const std::string& text, const Json& context, const Json* output,
                      const std::string& error) {
  std::string got;
  try {
    got = ChatTemplate(text).render(context.dump(), test::golden_time);
  } catch (const Error& thrown) {
    ASSERT_EQ(output, nullptr) << thrown.what();
    constexpr std::string_view kRaised = "TemplateError: ";
    if (error.starts_with(kRaised)) {
      EXPECT_THAT(thrown.what(), HasSubstr(error.substr(kRaised.size())));
    }
    return;
  }
  ASSERT_NE(output, nullptr) << "expected " << error << ", got " << got;
  EXPECT_EQ(got, output->get<std::string>());
}

TEST(TemplateGoldens, TemplatesOfOurOwnRenderAsJinja2RendersThem) {
  const Json golden =
      Json::parse(read_file(fs::path(OUTRIDER_SOURCE_DIR) / "tests" / "golden" / "templates.json"));
  int n = 0;
  for (const Json& entry : golden["cases"]) {
    SCOPED_TRACE(entry["template"]);
    const bool fails = entry.contains("error");
    expect_rendering(entry["template"], golden["context"], fails ? nullptr : &entry["output"],
                     fails ? entry["error"].get<std::string>() : "");
    ++n;
  }
  EXPECT_GE(n, 250);
}

TEST(TemplateGoldens, TemplatesOfPublishedModelsRenderAsRecorded) {
  const fs::path folder = fs::path(OUTRIDER_SHARED_DATA) / "chat";
  const fs::path file = folder / "goldens" / "jinja2_renders.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no shared data: " << file;
  int n = 0;
  for (const Json& entry : Json::parse(read_file(file))) {
    const std::string context = entry["context"];
    SCOPED_TRACE(entry["template"].get<std::string>() + " " + context);
    const bool fails = entry.contains("error");
    expect_rendering(read_file(folder / entry["template"].get<std::string>()),
                     Json::parse(read_file(folder / "contexts_minja" / (context + ".json"))),
                     fails ? nullptr : &entry["output"],
                     fails ? entry["error"].get<std::string>() : "");
    ++n;
  }
  EXPECT_GE(n, 50);  // guards against silently missing templates
}

TEST(TemplateGoldens, TemplatesOfALongConversationRenderAsRecorded) {
  const fs::path file = fs::path(OUTRIDER_SHARED_DATA) / "chat" / "goldens" / "llamacpp_cases.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no shared data: " << file;
  const Json golden = Json::parse(read_file(file));
  int n = 0;
  for (const Json& entry : golden["cases"]) {
    SCOPED_TRACE(entry["name"]);
    Json context;
    context["messages"] = golden["messages"];
    context["add_generation_prompt"] = golden["add_generation_prompt"];
    context["bos_token"] = entry.value("bos_token", "");
    context["eos_token"] = entry.value("eos_token", "");
    const bool fails = entry.contains("jinja2_error");
    expect_rendering(entry["template_str"], context, fails ? nullptr : &entry["jinja2_render"],
                     fails ? entry["jinja2_error"].get<std::string>() : "");
    ++n;
  }
  EXPECT_GE(n, 25);
}

}  // namespace
}  // namespace outrider
