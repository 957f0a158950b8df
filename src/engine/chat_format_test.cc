// Renderings against those of the templates themselves (made with jinja2), and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "outrider/chat.h"
#include "outrider/error.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

// What rendering asks a tokenizer for, and nothing else.
class TemplateOnly : public Tokenizer {
 public:
  explicit TemplateOnly(std::string text, std::string bos = "<s>", std::string eos = "</s>")
      : template_(std::move(text)), pieces_{std::move(bos), std::move(eos)} {}

  std::vector<TokenId> encode(std::string_view, bool) const override { return {}; }
  std::unique_ptr<Decoding> start_decoding(bool) const override { return nullptr; }
  bool has(TokenId id) const override { return id == 0 || id == 1; }
  std::string_view piece(TokenId id) const override { return pieces_[id == 0 ? 0 : 1]; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string bytes(TokenId) const override { return {}; }
  int vocabulary_size() const override { return 2; }
  bool is_special(TokenId) const override { return true; }
  TokenId bos_token() const override { return pieces_[0].empty() ? kNoToken : 0; }
  TokenId eos_token() const override { return pieces_[1].empty() ? kNoToken : 1; }
  const std::string& chat_template() const override { return template_; }

 private:
  std::string template_;
  std::string pieces_[2];
};

std::vector<ChatMessage> read_messages(const json& list) {
  std::vector<ChatMessage> messages;
  for (const json& message : list) messages.push_back({message["role"], message["content"]});
  return messages;
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

const fs::path& chat_data() {
  static const fs::path folder = fs::path(OUTRIDER_SHARED_DATA) / "chat";
  return folder;
}

// The plain form of each family, in words of our own: several turns, a system message, blanks.
TEST(ChatFormat, RendersThePlainFormOfEachFamily) {
  const std::vector<ChatMessage> messages = {
      {"system", "Be brief."}, {"user", " Hi "}, {"assistant", "Yes?"}, {"user", "Who?"}};
  const TemplateOnly chatml("{{ '<|im_start|>' }}{{ '<|im_end|>' }}");
  ASSERT_EQ(detect_chat_format(chatml), ChatFormat::chatml);
  EXPECT_EQ(render_chat(ChatFormat::chatml, chatml, messages),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n"
            "<|im_start|>assistant\nYes?<|im_end|>\n<|im_start|>user\nWho?<|im_end|>\n"
            "<|im_start|>assistant\n");

  const TemplateOnly llama2("{{ bos_token + '[INST] ' }}<<SYS>>{{ content | trim }}");
  ASSERT_EQ(detect_chat_format(llama2), ChatFormat::llama2);
  EXPECT_EQ(
      render_chat(ChatFormat::llama2, llama2, messages),
      "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\n Hi [/INST] Yes? </s><s>[INST] Who? [/INST]");

  const TemplateOnly llama3("{{ bos_token }}<|start_header_id|>{{ content | trim }}<|eot_id|>",
                            "<B>");
  ASSERT_EQ(detect_chat_format(llama3), ChatFormat::llama3);
  EXPECT_EQ(render_chat(ChatFormat::llama3, llama3, messages),
            "<B><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nYes?<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nWho?<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

// A template that states a system message of its own gives it to conversations without one.
TEST(ChatFormat, KeepsTheModelsOwnSystemMessage) {
  const TemplateOnly tokenizer(
      "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nIt\\'s a robot.<|im_end|>"
      "\\n' }}{% endif %}{{'<|im_start|>' + message['role']}}");
  const std::vector<ChatMessage> bare = {{"user", "Hi"}};
  EXPECT_EQ(render_chat(detect_chat_format(tokenizer), tokenizer, bare),
            "<|im_start|>system\nIt's a robot.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
  const std::vector<ChatMessage> with = {{"system", "No."}, {"user", "Hi"}};
  EXPECT_EQ(render_chat(ChatFormat::chatml, tokenizer, with),
            "<|im_start|>system\nNo.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n");
}

TEST(ChatFormat, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(detect_chat_format(TemplateOnly("")), Error);
  EXPECT_THROW(detect_chat_format(TemplateOnly("<start_of_turn>user")), Error);
  EXPECT_THROW(detect_chat_format(TemplateOnly("[INST] without a system form")), Error);
  const TemplateOnly tokenizer("<|im_start|><|im_end|>");
  EXPECT_THROW(render_chat(ChatFormat::chatml, tokenizer, {}), Error);
  const std::vector<ChatMessage> tool = {{"tool", "3"}};
  EXPECT_THROW(render_chat(ChatFormat::chatml, tokenizer, tool), Error);
  const std::vector<ChatMessage> twice = {{"user", "a"}, {"user", "b"}};
  EXPECT_THROW(render_chat(ChatFormat::llama2, tokenizer, twice), Error);
}

TEST(ChatFormat, EqualsTheTemplatesOfRealModelsOverSeveralTurns) {
  const fs::path file = chat_data() / "goldens" / "llamacpp_cases.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no shared data: " << file;
  const json golden = json::parse(read_file(file));
  const std::vector<ChatMessage> messages = read_messages(golden["messages"]);
  int n_compared = 0;
  for (const json& entry : golden["cases"]) {
    const TemplateOnly tokenizer(entry["template_str"], entry.value("bos_token", ""),
                                 entry.value("eos_token", ""));
    SCOPED_TRACE(entry["name"]);
    ChatFormat format{};
    try {
      format = detect_chat_format(tokenizer);
    } catch (const Error&) {
      continue;  // another family
    }
    ASSERT_TRUE(entry.contains("jinja2_render"));
    std::string expected = entry["jinja2_render"];
    // One template writes the beginning-of-sequence before every turn but the first and leaves that
    // one to the tokenizer; here all of them are the rendering's.
    const std::string bos(tokenizer.bos_token() == kNoToken ? "" : tokenizer.piece(0));
    if (format == ChatFormat::llama2 && !expected.starts_with(bos)) expected.insert(0, bos);
    EXPECT_EQ(render_chat(format, tokenizer, messages), expected);
    ++n_compared;
  }
  // OpenHermes (ChatML), FusionNet and Vigogne (Llama-2), Llama-3: none may drop out unseen.
  EXPECT_GE(n_compared, 4);
}

TEST(ChatFormat, EqualsTheTemplatesThatModelsAreShippedWith) {
  const fs::path file = chat_data() / "goldens" / "jinja2_renders.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no shared data: " << file;
  const json golden = json::parse(read_file(file));
  int n_compared = 0;
  for (const json& entry : golden) {
    const std::string name = entry["template"];
    // (Another collection spells its templates with line ends and indentation of its own, which a
    // rendering without the options they are meant for keeps.)
    if (name.starts_with("templates_chujiezheng/") && name.find("qwen") == std::string::npos) {
      continue;
    }
    if (entry["context"] == "tool_use") continue;
    const json context = json::parse(read_file(chat_data() / "contexts_minja" /
                                               (entry["context"].get<std::string>() + ".json")));
    const TemplateOnly tokenizer(read_file(chat_data() / name), context["bos_token"],
                                 context["eos_token"]);
    SCOPED_TRACE(name + " " + entry["context"].get<std::string>());
    ChatFormat format{};
    try {
      format = detect_chat_format(tokenizer);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("ChatML, Llama-2 or Llama-3"));
      continue;
    }
    ASSERT_TRUE(entry.contains("output")) << "taken for plain";
    EXPECT_EQ(render_chat(format, tokenizer, read_messages(context["messages"])), entry["output"]);
    ++n_compared;
  }
  // Qwen2.5 in two collections, Qwen3-Coder, Llama-3.2, Llama-3.3: with and without a system
  // message.
  EXPECT_GE(n_compared, 10);
}

}  // namespace
}  // namespace outrider
