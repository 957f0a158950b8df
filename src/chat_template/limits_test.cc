// SPDX-License-Identifier: Apache-2.0
// Limits on a template's cost: exceeding one gives one clear error with its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "chat_template/render.h"
#include "outrider/chat_template.h"
#include "outrider/error.h"

namespace outrider {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string repeated(std::string_view part, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += part;
  return text;
}

// The error that a template gives; "" if it renders.
std::string error_of(std::string_view text, const jinja::Limits& limits = {},
                     std::string_view variables = "{}") {
  try {
    jinja::render(jinja::ParsedTemplate(text), variables, local_time, limits);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(TemplateErrors, NameTheLineAndWhatIsWrong) {
  EXPECT_EQ(error_of("a\n{% frob %}"),
            "[read chat template] line 2: expected a known statement, got 'frob'");
  EXPECT_EQ(error_of("a\n\n{{ 1|frob }}"),
            "[render chat template] line 3: expected a known filter, got 'frob'");
  EXPECT_EQ(error_of("{{ 1 is frob }}"),
            "[render chat template] line 1: expected a known test, got 'frob'");
  EXPECT_EQ(error_of("{{ 'a'.frob() }}"),
            "[render chat template] line 1: expected an attribute 'frob' of str, got none");
  EXPECT_EQ(error_of("\n{{ x.y }}"),
            "[render chat template] line 2: expected a variable 'x', got none (it is undefined)");
  EXPECT_EQ(
      error_of("{{ [].append(1) }}"),
      "[render chat template] line 1: expected a method that changes nothing, got list.append");
  EXPECT_EQ(error_of("{% if x %}\n"),
            "[read chat template] line 1: expected {% endif %}, got the end of the template");
  EXPECT_EQ(error_of("\n{{ raise_exception('Only ' ~ 'user') }}"),
            "[render chat template] line 2: Only user");
  EXPECT_THAT(error_of("\xff"), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of("{{ '\\ud83d' }}"), HasSubstr("Unicode character"));
  EXPECT_THAT(error_of("a", {}, "[]"), HasSubstr("a JSON object"));
  EXPECT_THAT(error_of("a", {}, "{"), HasSubstr("JSON text"));
  EXPECT_THAT(error_of("a", {}, R"({"n": 9223372036854775808})"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("a", {}, R"({"n": 99999999999999999999999})"), HasSubstr("64 bits"));
}

TEST(TemplateLimits, IntegersHave64Bits) {
  EXPECT_EQ(error_of("{{ 9223372036854775807 }}{{ -9223372036854775807 - 1 }}"), "");
  for (const char* text :
       {"{{ 9223372036854775808 }}", "{{ 9223372036854775807 + 1 }}",
        "{{ -9223372036854775807 - 2 }}", "{{ 4611686018427387904 * 2 }}", "{{ 2 ** 63 }}",
        "{{ -(-9223372036854775807 - 1) }}", "{{ (-9223372036854775807 - 1) // -1 }}",
        "{{ (-9223372036854775807 - 1)|abs }}", "{{ 1e30|int }}",
        "{{ '9223372036854775808'|int }}"}) {
    EXPECT_THAT(error_of(text), HasSubstr("64 bits")) << text;
  }
  EXPECT_EQ(error_of("{{ (-9223372036854775807 - 1) % -1 }}"), "");
}

TEST(TemplateLimits, BoundTimeTextAndMemory) {
  constexpr jinja::Limits kSmall{
      .n_steps = 1'000'000, .text_bytes = 10'000, .memory_bytes = 200'000};
  constexpr std::string_view kLoops =
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(error_of(kLoops, kSmall), AllOf(HasSubstr("line 1"), HasSubstr("1000000 steps")));
  EXPECT_THAT(error_of("{{ 'a' * 100000000 }}"), HasSubstr("67108864 bytes"));
  EXPECT_THAT(error_of("{{ '' * 9223372036854775807 }}"), "");
  EXPECT_THAT(error_of("{{ [] * 9223372036854775807 }}"), "");
  EXPECT_THAT(error_of("{{ [1] * 9223372036854775807 }}", kSmall),
              HasSubstr("200000 bytes of values"));
  EXPECT_THAT(error_of("{{ range(100001) }}"), HasSubstr("100000 numbers"));
  EXPECT_THAT(error_of("{{ range(-9223372036854775807, 9223372036854775807) }}"),
              HasSubstr("100000 numbers"));
  EXPECT_THAT(error_of("{% for a in range(2000) %}aaaaaa{% endfor %}", kSmall),
              HasSubstr("10000 bytes"));
  EXPECT_THAT(error_of("{{ '%99999d' % 1 }}"), HasSubstr("width"));
  EXPECT_THAT(error_of("{{ '{:99999}'.format(1) }}"), HasSubstr("width"));
  EXPECT_THAT(error_of("{{ 'a'.center(9223372036854775807) }}"), HasSubstr("bytes"));
  constexpr std::string_view kDoubling =
      "{% set ns = namespace(s='ab') %}{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}"
      "{% endfor %}";
  EXPECT_THAT(error_of(kDoubling, kSmall), HasSubstr("10000 bytes"));
  constexpr std::string_view kLists =
      "{% set ns = namespace(l=[1]) %}{% for i in range(40) %}{% set ns.l = ns.l + ns.l %}"
      "{% endfor %}";
  EXPECT_THAT(error_of(kLists, kSmall), HasSubstr("200000 bytes of values"));
}

TEST(TemplateLimits, BoundNesting) {
  constexpr int kMany = 100'000;
  for (const auto& [open, close] :
       std::vector<std::pair<std::string, std::string>>{{"(", ")"},
                                                        {"[", "]"},
                                                        {"{1:", "}"},
                                                        {"x[", "]"},
                                                        {"f(", ")"},
                                                        {"- ", ""},
                                                        {"not ", ""},
                                                        {"1 is in ", ""},
                                                        {"x if ", ""}}) {
    EXPECT_THAT(error_of("{{ " + repeated(open, kMany) + "1" + repeated(close, kMany) + " }}"),
                HasSubstr("[read chat template]"))
        << open;
  }
  for (const char* chain : {".a", "[0]", "|upper", " + 1", " and 1", " if 1", "()"}) {
    EXPECT_THAT(error_of("{{ 1" + repeated(chain, kMany) + " }}"), HasSubstr("nested at most"))
        << chain;
  }
  EXPECT_THAT(error_of(repeated("{% if 1 %}", kMany)), HasSubstr("nested at most"));
  EXPECT_THAT(error_of(repeated("{% for x in y %}", kMany)), HasSubstr("nested at most"));
  EXPECT_THAT(error_of("{% set " + repeated("(", kMany) + "a" + repeated(")", kMany) + " = 1 %}"),
              HasSubstr("parentheses"));
  EXPECT_THAT(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
              HasSubstr("nested at most"));
  EXPECT_THAT(error_of("{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
              HasSubstr("nested at most"));
  EXPECT_THAT(error_of("{{ '" + repeated("{:", 1000) + repeated("}", 1000) + "'.format(1) }}"),
              HasSubstr("format"));
  // Nested values, and nested iterators, which filters make.
  constexpr std::string_view kGrow =
      "{% set ns = namespace(v=[]) %}{% for i in range(1000) %}{% set ns.v = STEP %}{% endfor %}"
      "{{ ns.v|list }}";
  for (const char* step : {"[ns.v]", "(ns.v,)", "{'a': ns.v}", "ns.v|map('upper')"}) {
    std::string text(kGrow);
    text.replace(text.find("STEP"), 4, step);
    EXPECT_THAT(error_of(text), HasSubstr("nested at most 200")) << step;
  }
  // A value that holds another one twice, which does the same, and so on: small, but huge when
  // printed.
  constexpr std::string_view kTwice =
      "{% set ns = namespace(v=()) %}{% for i in range(150) %}{% set ns.v = (ns.v, ns.v) %}"
      "{% endfor %}";
  constexpr jinja::Limits kSmall{.n_steps = 1'000'000, .text_bytes = 10'000};
  for (const auto& [use, limit] :
       std::vector<std::pair<std::string, std::string>>{{"{{ ns.v }}", "10000 bytes"},
                                                        {"{{ ns.v|tojson }}", "10000 bytes"},
                                                        {"{{ {ns.v: 1} }}", "1048576 bytes"}}) {
    EXPECT_THAT(error_of(std::string(kTwice) + use, kSmall), HasSubstr(limit)) << use;
  }
  EXPECT_EQ(error_of(std::string(kTwice) + "{{ [ns.v, (ns.v[0], ns.v[1])]|sort == 1 }}", kSmall),
            "");
  EXPECT_THAT(error_of("a", {}, R"({"a":)" + repeated("[", kMany) + repeated("]", kMany) + "}"),
              HasSubstr("nested at most"));
}

// Namespaces may contain themselves and each other, in any number. Printing them is bounded, and
// freeing them does not recurse.
TEST(TemplateLimits, NamespacesInRingsAndChainsDoNoHarm) {
  EXPECT_EQ(ChatTemplate("{% set a = namespace() %}{% set a.a = a %}{{ a.a.a == a }}").render("{}"),
            "True");
  EXPECT_THAT(error_of("{% set a = namespace() %}{% set a.a = [a] %}{{ a }}"),
              HasSubstr("namespaces nested at most 20 deep"));
  EXPECT_EQ(ChatTemplate("{% set n = namespace(at=namespace()) %}{% set first = n.at %}"
                         "{% for i in range(100000) %}{% set here = n.at %}"
                         "{% set here.next = namespace() %}{% set n.at = here.next %}{% endfor %}"
                         "{{ first.next.next is defined }}")
                .render("{}"),
            "True");
  EXPECT_EQ(ChatTemplate("{% set n = namespace(m=none) %}{% for i in range(20000) %}"
                         "{% set before = n.m %}{% macro m() %}{{ i }}{% endmacro %}"
                         "{% set n.m = m %}{% endfor %}{{ n.m() }}")
                .render("{}"),
            "19999");
}

// A conversation that fills a large context uses a small part of the limits.
TEST(TemplateLimits, LeaveRoomForLongConversations) {
  constexpr std::string_view kTemplate =
      "{{- bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == "
      "0) %}"
      "{{ raise_exception('no') }}{% endif %}{{- '<|' + m['role'] + '|>' + m['content'] | trim }}"
      "{%- if m.content.split('</think>')|length > 1 %}{{ m.content.split('</think>')[-1] }}{% "
      "endif %}"
      "{% endfor %}";
  std::string variables = R"({"bos_token": "<s>", "messages": [)";
  constexpr int kMessages = 2000;
  for (int i = 0; i < kMessages; ++i) {
    variables += i == 0 ? "" : ",";
    variables +=
        i % 2 == 0 ? R"({"role": "user", "content": ")" : R"({"role": "assistant", "content": ")";
    variables += repeated("four", 500) + R"("})";
  }
  variables += "]}";
  const auto rendering = jinja::render(jinja::ParsedTemplate(kTemplate), variables, local_time, {});
  EXPECT_GT(rendering.text.size(), std::size_t{kMessages} * 2000);
  EXPECT_LT(rendering.n_steps, jinja::Limits().n_steps / 50);
}

TEST(TemplateThreads, OneTemplateRendersInSeveralAtOnce) {
  const ChatTemplate chat_template(
      "{% macro f(x) %}<{{ x }}>{% endmacro %}{% for i in l %}{{ f(i ~ 'a') }}{% endfor %}");
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) text = chat_template.render(R"({"l": [1, "b"]})");
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) EXPECT_EQ(text, "<1a><ba>");
}

}  // namespace
}  // namespace outrider
