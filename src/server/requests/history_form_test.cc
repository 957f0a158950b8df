// SPDX-License-Identifier: Apache-2.0
// What templates accept of earlier turns: small templates, each in the form of a family's.
#include "server/requests/history_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/chat.h"
#include "server/answers/answer_json.h"
#include "server/api_error.h"

namespace outrider::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

HistoryForm form_of(const std::string& chat_template) {
  return find_history_form(ChatTemplate(chat_template), nullptr);
}

// The prompt that the server makes of these messages.
std::string prompt_of(const std::string& text, const std::string& messages,
                      const std::string& tools = "[]", const std::string& format = "none") {
  const ChatTemplate chat_template(text);
  const Json given = Json::parse(tools);
  const FittedMessages fit =
      fitted(Json::parse(messages), given, Json::object(),
             find_history_form(chat_template, nullptr), reply_format_named(format).value());
  ChatOptions options;
  options.add_generation_prompt = false;
  if (!given.empty()) options.tools = tools;
  ChatPrompt prompt;
  prompt.text =
      chat_template.render(chat_variables(nullptr, dumped(fit.messages), options), options.clock);
  put_calls(fit.placed, nullptr, MessageGuard::none, prompt);
  return prompt.text;
}

// Qwen and most others: objects, as JSON.
constexpr const char* kObjects =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} "
    "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
// Qwen3-Coder, GLM, LFM2.5: members one by one, which fails for a text.
constexpr const char* kMembers =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}"
    "{% for k, v in c.function.arguments.items() %}({{ k }}={{ v }}){% endfor %}{% endfor %}"
    "{% endfor %}";
// DeepSeek-V3.1: concatenates a text, which fails for an object.
constexpr const char* kTexts =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ '[' + m.role + ']' }}"
    "{% if m.content %}{{ m.content }}{% endif %}{% for c in m.tool_calls or [] %}"
    "{{ '<call>' + c.function.name + ' ' + c.function.arguments }}{% endfor %}{% endfor %}";
// Prints an object as Python does.
constexpr const char* kPrinted =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function.arguments }}{% endfor %}"
    "{% endfor %}";
// LFM2's as llama.cpp has it: either.
constexpr const char* kEither =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content }}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}<call>"
    "{% if a is string %}{{ a }}{% else %}{{ a | tojson }}{% endif %}{% endfor %}{% endfor %}";
// DeepSeek-R1: calls only if the content is null.
constexpr const char* kNull =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}{{ '[' + m.role + ']' }}"
    "{% if m.content is none %}{% for c in m.tool_calls %}"
    "{{ '<call>' + c.function.name + ' ' + c.function.arguments }}{% endfor %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}";
// LFM2's first, SmolLM2: no calls at all.
constexpr const char* kNone =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}[{{ m.role }}]"
    "{{ m.content }}{% endfor %}";
// Phi-4-mini: tools as text in the system message.
constexpr const char* kPhi =
    "{% for m in messages %}{% if m['role'] == 'system' and 'tools' in m and m['tools'] is not "
    "none "
    "%}{{ '[system]' + m['content'] + '<|tool|>' + m['tools'] + '<|/tool|>' }}{% else %}"
    "{{ '[' + m['role'] + ']' + m['content'] }}{% endif %}{% endfor %}";
// OLMo 3: results have the role environment; other roles are ignored.
constexpr const char* kEnvironment =
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for m in messages %}"
    "{% if m.role == 'user' %}[user]{{ m.content }}{% elif m.role == 'assistant' %}[assistant]"
    "{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
    "({% for k, v in c.function.arguments.items() %}{{ k ~ '=' ~ (v | tojson) }}{% endfor %})"
    "{% endfor %}{% elif m.role == 'environment' %}[environment]{{ m.content }}{% endif %}"
    "{% endfor %}";

constexpr const char* kTalk = R"([{"role": "user", "content": "Q"},
    {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function",
     "function": {"name": "f", "arguments": "{\"a\": [1.0, true, null], \"b\": \"x\"}"}}]},
    {"role": "tool", "content": "R", "tool_call_id": "1"}])";
constexpr const char* kTools = R"([{"type": "function", "function": {"name": "f"}}])";

TEST(HistoryForm, IsWhatTheTemplateShows) {
  EXPECT_FALSE(form_of(kObjects).arguments_as_text);
  EXPECT_FALSE(form_of(kMembers).arguments_as_text);
  EXPECT_FALSE(form_of(kEither).arguments_as_text);
  EXPECT_TRUE(form_of(kTexts).arguments_as_text);
  EXPECT_TRUE(form_of(kPrinted).arguments_as_text);
  for (const char* text : {kObjects, kMembers, kTexts, kPrinted, kEnvironment}) {
    const HistoryForm form = form_of(text);
    EXPECT_FALSE(form.null_content) << text;
    EXPECT_FALSE(form.calls_in_content) << text;
    EXPECT_FALSE(form.tools_in_system) << text;
  }
  EXPECT_TRUE(form_of(kNull).null_content);
  EXPECT_TRUE(form_of(kNull).arguments_as_text);
  EXPECT_TRUE(form_of(kNone).calls_in_content);
  EXPECT_FALSE(form_of(kNone).tools_in_system);
  EXPECT_TRUE(form_of(kPhi).calls_in_content);
  EXPECT_TRUE(form_of(kPhi).tools_in_system);
  EXPECT_EQ(form_of(kPhi).result_role, "tool");
  EXPECT_EQ(form_of(kEnvironment).result_role, "environment");
  EXPECT_EQ(form_of("{{ raise_exception('no') }}").result_role, "tool");
}

TEST(HistoryForm, ShowsCallsAsTheTemplateWantsThem) {
  EXPECT_EQ(prompt_of(kObjects, kTalk),
            "[user]Q[assistant]<call>f {\"a\": [1.0, true, null], \"b\": \"x\"}[tool]R");
  EXPECT_EQ(prompt_of(kMembers, kTalk),
            "[user]Q[assistant]<call>f(a=[1.0, True, None])(b=x)[tool]R");
  // A text is passed on as the client sent it.
  EXPECT_EQ(prompt_of(kTexts, kTalk),
            "[user]Q[assistant]<call>f {\"a\": [1.0, true, null], \"b\": \"x\"}[tool]R");
  EXPECT_EQ(prompt_of(kPrinted, kTalk),
            "[user]Q[assistant]<call>{\"a\": [1.0, true, null], \"b\": \"x\"}[tool]R");
  EXPECT_EQ(prompt_of(kNull, kTalk),
            "[user]Q[assistant]<call>f {\"a\": [1.0, true, null], \"b\": \"x\"}[tool]R");
  EXPECT_EQ(prompt_of(kEnvironment, kTalk),
            "[user]Q[assistant]f(a=[1.0, true, null]b=\"x\")[environment]R");
}

// A message with calls; `calls` are the members of their functions.
std::string calls_of(const std::vector<std::string>& calls) {
  std::string list;
  for (const std::string& call : calls) {
    list += (list.empty() ? "" : ", ") + ("{\"function\": {" + call + "}}");
  }
  return R"([{"role": "assistant", "content": "c", "tool_calls": [)" + list + "]}]";
}

TEST(HistoryForm, SpellsCallsThatTheTemplateLeavesOut) {
  EXPECT_EQ(prompt_of(kNone, kTalk, "[]", "lfm2"),
            "[user]Q[assistant]<|tool_call_start|>[f(a=[1.0, True, None], b=\"x\")]"
            "<|tool_call_end|>[tool]R");
  EXPECT_EQ(prompt_of(kNone, kTalk, "[]", "smollm"),
            "[user]Q[assistant]<tool_call>[{\"name\": \"f\", \"arguments\": "
            "{\"a\": [1.0, true, null], \"b\": \"x\"}}]</tool_call>[tool]R");
  EXPECT_EQ(prompt_of(kNone, calls_of({R"("name": "f")", R"("name": "g")"}), "[]", "kimi"),
            "[assistant]c<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
            "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_call_begin|>functions.g:1"
            "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>");
  // Content beside a call, if the template accepts only one of the two.
  const std::string both = R"([{"role": "assistant", "content": "c", "tool_calls":
      [{"function": {"name": "f", "arguments": {"a": 1}}}, {"function": {"name": "g"}}]}])";
  EXPECT_EQ(prompt_of(kNull, both, "[]", "deepseek-plain"),
            "[assistant]c<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
            "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
            "<｜tool▁calls▁end｜>");
}

// Invalid arguments from a model are kept, and do not affect other calls.
TEST(HistoryForm, SpellsCallsWithBrokenArguments) {
  const std::string good = R"("name": "g", "arguments": "{\"b\": 1}")";
  const auto spelled = [&](const std::string& call, const char* format) {
    return prompt_of(kNone, calls_of({call, good}), "[]", format);
  };
  EXPECT_EQ(spelled(R"("name": "f", "arguments": "{\"a\":")", "lfm2"),
            "[assistant]c<|tool_call_start|>[f({\"a\":), g(b=1)]<|tool_call_end|>");
  EXPECT_EQ(spelled(R"("name": "f", "arguments": "{\"a\":")", "smollm"),
            "[assistant]c<tool_call>[{\"name\": \"f\", \"arguments\": {\"a\":}, "
            "{\"name\": \"g\", \"arguments\": {\"b\": 1}}]</tool_call>");
  EXPECT_EQ(spelled(R"("name": "f", "arguments": [1])", "lfm2"),
            "[assistant]c<|tool_call_start|>[f([1]), g(b=1)]<|tool_call_end|>");
  EXPECT_EQ(spelled(R"("name": "f", "arguments": null)", "lfm2"),
            "[assistant]c<|tool_call_start|>[f(), g(b=1)]<|tool_call_end|>");
  // A name that Python cannot spell.
  EXPECT_EQ(spelled(R"("name": "f", "arguments": {"a b": true})", "lfm2"),
            "[assistant]c<|tool_call_start|>[f({\"a b\":true}), g(b=1)]<|tool_call_end|>");
  EXPECT_EQ(prompt_of(kObjects, calls_of({R"("name": "f", "arguments": "no JSON")"})),
            "[assistant]c<call>f \"no JSON\"");
}

std::string refusal_of(const std::string& messages, const char* format) {
  try {
    prompt_of(kNone, messages, "[]", format);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "";
}

// A call is never left out silently.
TEST(HistoryForm, RefusesCallsThatCannotBeSpelled) {
  EXPECT_EQ(refusal_of(kTalk, "none"),
            "messages[1].tool_calls: expected calls that the model's form (none) can spell, since "
            "its chat template shows none, got a call of 'f'");
  EXPECT_THAT(refusal_of(kTalk, "glm"), HasSubstr("(glm)"));
  EXPECT_THAT(refusal_of(calls_of({R"("arguments": {})"}), "smollm"), HasSubstr("a call of ''"));
  EXPECT_THAT(refusal_of(calls_of({R"("name": "a b")"}), "lfm2"), HasSubstr("a call of 'a b'"));
}

// A template with alternating turns: consecutive messages of one role are joined.
TEST(HistoryForm, JoinsResultsWhereTurnsAlternate) {
  const std::string gemma =
      "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
      "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
      "[{{ m.role }}]{{ m.content }}{% endfor %}";
  EXPECT_EQ(form_of(gemma).result_role, "user");
  EXPECT_TRUE(form_of(gemma).joins_results);
  const std::string calls = R"({"role": "user", "content": "Q"}, {"role": "assistant",
      "content": "", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}},
      {"id": "2", "function": {"name": "g", "arguments": {}}}]},
      {"role": "tool", "content": "R", "tool_call_id": "1"})";
  const std::string more = R"(, {"role": "tool", "content": "S", "tool_call_id": "2"})";
  const std::string asked = R"(, {"role": "user", "content": "T"})";
  const std::string begin = "[user]Q[assistant][f(), g()][user]f: R";
  EXPECT_EQ(prompt_of(gemma, "[" + calls + "]", "[]", "gemma"), begin);
  EXPECT_EQ(prompt_of(gemma, "[" + calls + more + "]", "[]", "gemma"), begin + "\n\ng: S");
  EXPECT_EQ(prompt_of(gemma, "[" + calls + asked + "]", "[]", "gemma"), begin + "\n\nT");
  EXPECT_EQ(prompt_of(gemma, "[" + calls + more + asked + "]", "[]", "gemma"),
            begin + "\n\ng: S\n\nT");
  // A role of its own for results: several are joined and labelled.
  const std::string paired =
      "{% for m in messages %}{% if (m.role == 'assistant') != (loop.index0 % 2 == 1) %}"
      "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
      "[{{ m.role }}]{{ m.content }}{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} "
      "{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
  EXPECT_EQ(form_of(paired).result_role, "tool");
  EXPECT_TRUE(form_of(paired).joins_results);
  const std::string shown = "[user]Q[assistant]<call>f {}<call>g {}[tool]";
  EXPECT_EQ(prompt_of(paired, "[" + calls + "]"), shown + "R");
  EXPECT_EQ(prompt_of(paired, "[" + calls + more + "]"), shown + "f: R\n\ng: S");
  // Most templates take each separately.
  EXPECT_FALSE(form_of(kObjects).joins_results);
  EXPECT_EQ(prompt_of(kObjects, "[" + calls + more + asked + "]"), shown + "R[tool]S[user]T");
  for (const char* text : {kMembers, kTexts, kPrinted, kNull, kNone, kPhi, kEnvironment}) {
    EXPECT_FALSE(form_of(text).joins_results) << text;
  }
}

// A tokenizer with two special tokens, <A> and <B>, and just what the test needs.
class TwoTokens : public Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view, bool) const override { return {}; }
  std::unique_ptr<Decoding> start_decoding(bool) const override { return nullptr; }
  bool has(TokenId) const override { return false; }
  std::string_view piece(TokenId) const override { return {}; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string bytes(TokenId) const override { return {}; }
  int vocabulary_size() const override { return 0; }
  bool is_special(TokenId) const override { return true; }
  TokenId bos_token() const override { return kNoToken; }
  TokenId eos_token() const override { return kNoToken; }
  const std::string& chat_template() const override { return none_; }
  std::vector<TextRange> added_tokens_in(std::string_view text) const override {
    std::vector<TextRange> ranges;
    for (std::size_t at = 0; (at = text.find('<', at)) != std::string_view::npos; ++at) {
      ranges.push_back({at, at + 3});
    }
    return ranges;
  }

 private:
  std::string none_;
};

TEST(HistoryForm, OfPublishedTemplates) {
  const std::filesystem::path folder = std::filesystem::path(OUTRIDER_SHARED_DATA) / "chat";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no shared data: " << folder;
  struct Sample {
    const char* file;
    bool arguments_as_text;
    bool null_content;
    bool calls_in_content;
  };
  const TwoTokens tokenizer;  // Nemo's template needs an end token, even an empty one
  for (const auto& [file, as_text, null_content, in_content] : std::vector<Sample>{
           {"templates_llamacpp/deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja", true, true, false},
           {"templates_llamacpp/Qwen-Qwen2.5-7B-Instruct.jinja", false, false, false},
           {"templates_llamacpp/NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", false, false,
            false},
           {"templates_llamacpp/meta-llama-Llama-3.2-3B-Instruct.jinja", false, false, false},
           {"templates_llamacpp/mistralai-Mistral-Nemo-Instruct-2407.jinja", false, false, false},
           {"templates_minja/Qwen-Qwen3-Coder-30B-A3B-Instruct.jinja", false, false, false},
           {"templates_llamacpp/google-gemma-2-2b-it.jinja", false, false, true},
       }) {
    std::ifstream in(folder / file);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    const HistoryForm form = find_history_form(ChatTemplate(text), &tokenizer);
    EXPECT_EQ(form.arguments_as_text, as_text) << file;
    EXPECT_EQ(form.null_content, null_content) << file;
    EXPECT_EQ(form.calls_in_content, in_content) << file;
    EXPECT_EQ(form.result_role, in_content ? "user" : "tool") << file;
    EXPECT_EQ(form.reasoning_member, "reasoning_content") << file;
    EXPECT_FALSE(form.tools_in_system) << file;
  }
}

// Special tokens that occur in arguments are plain text, unlike the markers of calls; later ranges
// shift.
TEST(HistoryForm, GuardsWhatCallsSay) {
  const PlacedCalls placed = {
      "#", {{"<A>f(<B>)<A>", {{0, 3}, {9, 12}}}, {"<A>g()<A>", {{0, 3}, {6, 9}}}}};
  ChatPrompt prompt{.text = "<B> #0# <B> #1#<B>", .literals = {{0, 3}, {8, 11}, {15, 18}}};
  put_calls(placed, nullptr, MessageGuard::none, prompt);
  EXPECT_EQ(prompt.text, "<B> <A>f(<B>)<A> <B> <A>g()<A><B>");
  prompt = {.text = "<B> #0# <B> #1#<B>", .literals = {{0, 3}, {8, 11}, {15, 18}}};
  const TwoTokens tokenizer;
  put_calls(placed, &tokenizer, MessageGuard::special_tokens, prompt);
  std::vector<std::size_t> begins;
  for (const TextRange& range : prompt.literals) {
    EXPECT_EQ(prompt.text.substr(range.begin, range.end - range.begin), "<B>");
    begins.push_back(range.begin);
  }
  EXPECT_THAT(begins, ::testing::ElementsAre(0, 9, 17, 30));
}

// Marks that are no placeholders are kept, and so are similar ones inside calls.
TEST(HistoryForm, PutsCallsIntoTheirPlacesAlone) {
  const PlacedCalls placed = {"#", {{"f(#1#)"}, {"g()"}}};
  ChatPrompt prompt{.text = "# #2# ##0#1##x#1#0#"};
  put_calls(placed, nullptr, MessageGuard::none, prompt);
  EXPECT_EQ(prompt.text, "# #2# #f(#1#)1##xg()0#");
}

// The mark of placeholders occurs in no message, tool or variable.
TEST(HistoryForm, TakesASignThatNothingHolds) {
  const std::string last = "\uFDEF";
  const std::string before = "\uFDEE";
  const auto sign = [](const Json& tools, const Json& variables) {
    const Json messages = Json::parse(kTalk);
    return fitted(messages, tools, variables, {.calls_in_content = true},
                  reply_format_named("lfm2").value())
        .placed.sign;
  };
  EXPECT_EQ(sign(Json::array(), Json::object()), last);
  EXPECT_EQ(sign(Json::array({{{"name", last}}}), Json::object()), before);
  EXPECT_EQ(sign(Json::array(), {{"v", last}}), before);
}

TEST(HistoryForm, PutsToolsWhereTheTemplateReadsThem) {
  const std::string asked = R"([{"role": "user", "content": "Q"}])";
  EXPECT_EQ(prompt_of(kPhi, asked, kTools, "phi"),
            "[system]<|tool|>[{\"name\":\"f\"}]<|/tool|>[user]Q");
  EXPECT_EQ(prompt_of(kPhi, R"([{"role": "system", "content": "S"}, {"role": "user",
      "content": "Q"}])",
                      kTools, "phi"),
            "[system]S<|tool|>[{\"name\":\"f\"}]<|/tool|>[user]Q");
  EXPECT_EQ(prompt_of(kPhi, asked), "[user]Q");
  EXPECT_THAT(prompt_of(kObjects, asked, kTools), Not(HasSubstr("[system]")));
}

TEST(HistoryForm, NamesReasoningAsTheTemplateDoes) {
  const std::string talk = R"([{"role": "user", "content": "Q"},
      {"role": "assistant", "content": "A", "reasoning_content": "T"}])";
  EXPECT_EQ(prompt_of(kObjects, talk), "[user]Q[assistant]<think>T</think>A");
  const std::string named = R"([{"role": "user", "content": "Q"},
      {"role": "assistant", "content": "A", "reasoning": "T"}])";
  EXPECT_EQ(prompt_of(kObjects, named), "[user]Q[assistant]<think>T</think>A");
  // A null member counts as absent.
  const std::string null = R"([{"role": "user", "content": "Q"}, {"role": "assistant",
      "content": "A", "reasoning_content": null, "reasoning": "T", "thinking": null}])";
  EXPECT_EQ(prompt_of(kObjects, null), "[user]Q[assistant]<think>T</think>A");
  const std::string printed =
      "{% for m in messages %}{% if m.reasoning_content is defined %}<{{ m.reasoning_content }}>"
      "{% endif %}{{ m.content }}{% endfor %}";
  EXPECT_EQ(prompt_of(printed, R"([{"role": "assistant", "content": "A",
      "reasoning_content": null}])"),
            "A");
  const std::string thinking =
      "{% for m in messages %}[{{ m.role }}]{% if m.thinking %}<think>{{ m.thinking }}</think>"
      "{% endif %}{{ m.content }}{% endfor %}";
  EXPECT_EQ(form_of(thinking).reasoning_member, "thinking");
  EXPECT_EQ(prompt_of(thinking, talk), "[user]Q[assistant]<think>T</think>A");
  EXPECT_EQ(prompt_of(thinking, named), "[user]Q[assistant]<think>T</think>A");
}

// gpt-oss: a message with reasoning and calls must have no content, and a call's arguments are
// shown as `tojson` gives them.
TEST(HistoryForm, OfMessagesOnChannelsThinksWhatItSaysBesideCalls) {
  const std::string harmony =
      "{% for m in messages %}{% if m.tool_calls %}{% if m.content and m.thinking %}"
      "{{ raise_exception('both') }}{% endif %}<A>{{ m.content or m.thinking }}<C>"
      "{{ m.tool_calls[0].function.arguments | tojson }}{% else %}[{{ m.role }}]{{ m.content }}"
      "{% endif %}{% endfor %}";
  EXPECT_EQ(form_of(harmony).reasoning_member, "thinking");
  EXPECT_EQ(prompt_of(harmony, R"([{"role": "assistant", "content": "S", "reasoning_content": "T",
      "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": 1}"}}]}])",
                      "[]", "harmony"),
            "<A>T\n\nS<C>{\"a\": 1}");
}

}  // namespace
}  // namespace outrider::server
