// SPDX-License-Identifier: Apache-2.0
// Rendering conversations: the variables, the choice of the template, and the end of a turn.
#include "outrider/chat.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outrider/error.h"

namespace outrider {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A tokenizer with just what rendering needs: the given spellings are special tokens; no other text
// is a token.
class TemplateOnly : public Tokenizer {
 public:
  explicit TemplateOnly(std::string text, std::vector<std::string> pieces = {"<s>", "</s>"})
      : template_(std::move(text)), pieces_(std::move(pieces)) {}

  std::vector<TokenId> encode(std::string_view text, bool) const override {
    for (std::size_t id = 0; id < pieces_.size(); ++id) {
      if (!pieces_[id].empty() && text.starts_with(pieces_[id])) return {static_cast<TokenId>(id)};
    }
    return {};
  }
  std::unique_ptr<Decoding> start_decoding(bool) const override { return nullptr; }
  bool has(TokenId id) const override { return id >= 0 && id < vocabulary_size(); }
  std::string_view piece(TokenId id) const override {
    return pieces_[static_cast<std::size_t>(id)];
  }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string bytes(TokenId) const override { return {}; }
  int vocabulary_size() const override { return static_cast<int>(pieces_.size()); }
  bool is_special(TokenId) const override { return true; }
  TokenId bos_token() const override { return pieces_.empty() ? kNoToken : 0; }
  TokenId eos_token() const override { return pieces_.size() < 2 ? kNoToken : 1; }
  const std::string& chat_template() const override { return template_; }
  const std::string& tool_template() const override { return tools.empty() ? template_ : tools; }
  const std::string& special_tokens() const override { return special; }

  std::string tools;
  std::string special = "{}";

 private:
  std::string template_;
  std::vector<std::string> pieces_;
};

std::string rendered(const TemplateOnly& tokenizer, const std::vector<ChatMessage>& messages,
                     const ChatOptions& options = {}) {
  return render_chat(chat_template_of(tokenizer, !options.tools.empty()), tokenizer, messages,
                     options);
}

const std::vector<ChatMessage> kHello = {{"user", "Hi \"you\"\n\xF0\x9F\x98\x80"}};

TEST(Chat, GivesTheTemplateMessagesAndSpecialTokens) {
  const TemplateOnly tokenizer(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m['content'] }}{{ eos_token }}"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
      "{{ tools is none }}{{ date_string is defined }}");
  EXPECT_EQ(rendered(tokenizer, kHello),
            "<s>[user]Hi \"you\"\n\xF0\x9F\x98\x80</s>[assistant]TrueFalse");
  ChatOptions options;
  options.add_generation_prompt = false;
  options.variables = R"( { "date_string": "today", "eos_token": "<E>" } )";
  EXPECT_EQ(rendered(tokenizer, kHello, options),
            "<s>[user]Hi \"you\"\n\xF0\x9F\x98\x80<E>TrueTrue");
}

TEST(Chat, TakesSpecialTokensAsTheFilesSpellThem) {
  TemplateOnly tokenizer("{{ bos_token }}{{ pad_token }}{{ unk_token is defined }}");
  tokenizer.special = R"({"bos_token": "<B>", "pad_token": "<P>"})";
  EXPECT_EQ(rendered(tokenizer, kHello), "<B><P>False");
  const TemplateOnly none("[{{ bos_token + eos_token }}]", {});
  EXPECT_EQ(rendered(none, kHello), "[]");
}

TEST(Chat, KeepsToolsAsTheyAreSpelledAndTakesTheTemplateForThem) {
  TemplateOnly tokenizer("plain");
  tokenizer.tools = "{{ tools | tojson }}";
  ChatOptions options;
  options.tools = R"([{"name": "f", "most": 1.0, "least": -5, "enum": ["\u00e9", null]}])";
  EXPECT_EQ(rendered(tokenizer, kHello, options),
            R"([{"name": "f", "most": 1.0, "least": -5, "enum": ["é", null]}])");
  EXPECT_EQ(rendered(tokenizer, kHello), "plain");
}

TEST(Chat, TellsTheTimeOfTheClockItIsGiven) {
  const TemplateOnly tokenizer("{{ strftime_now('%d %b %Y') }}");
  ChatOptions options;
  options.clock = [] {
    std::tm time{};
    time.tm_year = 125;
    time.tm_mon = 1;
    time.tm_mday = 3;
    return time;
  };
  EXPECT_EQ(rendered(tokenizer, kHello, options), "03 Feb 2025");
}

TEST(Chat, RefusesWhatItCannotRender) {
  const auto error_of = [](const TemplateOnly& tokenizer, const ChatOptions& options = {}) {
    try {
      rendered(tokenizer, kHello, options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of(TemplateOnly("")),
            "[render chat] chat template: expected one stored with the model, got none");
  EXPECT_THAT(error_of(TemplateOnly("{{ raise_exception('No system role') }}")),
              HasSubstr("No system role"));
  EXPECT_THAT(error_of(TemplateOnly("{% frob %}")), HasSubstr("frob"));
  ChatOptions options;
  for (const char* tools : {"{}", "[1", "[] , \"messages\": []", "1", " ", "[]]"}) {
    options.tools = tools;
    EXPECT_THAT(error_of(TemplateOnly("a"), options), HasSubstr("tools: expected a JSON array"))
        << tools;
  }
  options = {};
  options.variables = "[]";
  EXPECT_THAT(error_of(TemplateOnly("a"), options), HasSubstr("variables"));
}

TEST(Chat, FindsWhatEndsATurn) {
  const auto ends = [](const std::string& text, std::vector<std::string> pieces) {
    const TemplateOnly tokenizer(text, std::move(pieces));
    return turn_ends(chat_template_of(tokenizer), tokenizer);
  };
  const std::string all = "{% for m in messages %}<{{ m.role }}>{{ m.content }}";
  // Known ends of turns, whether tokens or not; blanks before them are ignored.
  EXPECT_THAT(ends(all + "<|im_end|>\n{% endfor %}", {}), ElementsAre("<|im_end|>"));
  EXPECT_THAT(ends(all + " </s>{% endfor %}", {}), ElementsAre("</s>"));
  // An unknown special token.
  EXPECT_THAT(ends(all + "<halt>{% endfor %}", {"<s>", "</s>", "<halt>"}), ElementsAre("<halt>"));
  // Text that could occur in an answer; nothing at all; a template that refuses the conversation.
  EXPECT_THAT(ends(all + "<halt>{% endfor %}", {}), IsEmpty());
  EXPECT_THAT(ends(all + "\n{% endfor %}", {"<s>", "</s>"}), IsEmpty());
  EXPECT_THAT(ends("{{ raise_exception('no') }}", {}), IsEmpty());
  EXPECT_THAT(ends("{{ messages[0].content }}<|im_end|>", {}), IsEmpty());
}

TEST(Chat, VariablesAreOneJsonObject) {
  const TemplateOnly tokenizer("");
  ChatOptions options;
  options.tools = "[{}]";
  options.variables = "{}";
  const json variables =
      json::parse(chat_variables(&tokenizer, R"([{"role": "tool", "tool_call_id": 5}])", options));
  EXPECT_EQ(variables, json::parse(R"({"messages": [{"role": "tool", "tool_call_id": 5}],
      "tools": [{}], "documents": null, "add_generation_prompt": true, "bos_token": "<s>",
      "eos_token": "</s>"})"));
  EXPECT_FALSE(json::parse(chat_variables(nullptr, "[]")).contains("bos_token"));
}

}  // namespace
}  // namespace outrider
