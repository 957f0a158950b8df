// SPDX-License-Identifier: Apache-2.0
// Broken tokenizer files: each gives one Error, on one line, with place and cause.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "io/test_files.h"
#include "tokenizer/formats/gguf_vocabulary.h"
#include "tokenizer/test_tokenizers.h"

namespace outrider {
namespace {

using test::Json;

// The message of the Error that parsing `bytes` throws; fails if it throws none.
std::string parse_error(std::string_view bytes) {
  try {
    parse_tokenizer_json(bytes, "bad.json");
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_TRUE(is_valid_utf8(message)) << message;
    EXPECT_LT(message.size(), 600u) << message;
    return message;
  }
  ADD_FAILURE() << "no error: " << bytes.substr(0, 200);
  return "";
}

Json good_document() {
  Json vocab = test::byte_vocabulary();
  vocab["ab"] = 256;
  Json document = test::byte_level_document(vocab, Json::array({"a b"}));
  document["added_tokens"] = Json::array({{{"id", 257}, {"content", "<s>"}, {"special", true}}});
  return document;
}

TEST(Malformed, TheGoodDocumentIsGood) {
  EXPECT_EQ(test::make_tokenizer(good_document())->encode("ab<s>", true),
            (std::vector<TokenId>{256, 257}));
}

TEST(Malformed, NotJson) {
  const std::string good = good_document().dump();
  EXPECT_NE(parse_error("").find("JSON"), std::string::npos);
  EXPECT_NE(parse_error("tokens").find("JSON"), std::string::npos);
  EXPECT_NE(parse_error(good.substr(0, good.size() / 2)).find("JSON"), std::string::npos);
  EXPECT_NE(parse_error("{\"model\": \"\xFF\xFE\"}").find("JSON"), std::string::npos);
  EXPECT_NE(parse_error("{\"model\": \"\\ud800\"}").find("JSON"), std::string::npos);
  EXPECT_NE(parse_error(std::string("{\"a\": \"\n\"}")).find("JSON"), std::string::npos);
  EXPECT_NE(parse_error("[]").find("object"), std::string::npos);
  EXPECT_NE(parse_error("{}").find("model"), std::string::npos);
}

TEST(Malformed, DeepNesting) {
  std::string arrays(1000000, '[');
  EXPECT_NE(parse_error(arrays).find("nested"), std::string::npos);
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_NE(parse_error(objects).find("nested"), std::string::npos);
  // Deep, but within JSON's limit: sequences of sequences.
  Json inner = {{"type", "NFC"}};
  for (int i = 0; i < 40; ++i) {
    inner = {{"type", "Sequence"}, {"normalizers", Json::array({inner})}};
  }
  Json document = good_document();
  document["normalizer"] = inner;
  EXPECT_NE(parse_error(document.dump()).find("nested"), std::string::npos);
}

struct Broken {
  const char* name;
  std::function<void(Json&)> spoil;
  const char* says;  // the message must contain this
};

TEST(Malformed, EveryFieldIsChecked) {
  const std::vector<Broken> all = {
      {"no model", [](Json& d) { d.erase("model"); }, "model"},
      {"model of another kind", [](Json& d) { d["model"]["type"] = "WordPiece"; }, "WordPiece"},
      {"Unigram with a vocabulary of BPE", [](Json& d) { d["model"]["type"] = "Unigram"; },
       "list of pieces"},
      {"model type a number", [](Json& d) { d["model"]["type"] = 3; }, "model.type"},
      {"no vocabulary", [](Json& d) { d["model"].erase("vocab"); }, "vocab"},
      {"vocabulary a list", [](Json& d) { d["model"]["vocab"] = Json::array(); }, "model.vocab"},
      {"id a string", [](Json& d) { d["model"]["vocab"]["ab"] = "256"; }, "ab"},
      {"id a fraction", [](Json& d) { d["model"]["vocab"]["ab"] = 1.5; }, "ab"},
      {"id negative", [](Json& d) { d["model"]["vocab"]["ab"] = -1; }, "id below"},
      {"id huge", [](Json& d) { d["model"]["vocab"]["ab"] = 4000000000u; }, "id below"},
      {"id beyond 64 bits", [](Json& d) { d["model"]["vocab"]["ab"] = 18446744073709551615u; },
       "2^63"},
      {"id twice", [](Json& d) { d["model"]["vocab"]["ab"] = 7; }, "id 7"},
      {"no merges", [](Json& d) { d["model"].erase("merges"); }, "merges"},
      {"merges an object", [](Json& d) { d["model"]["merges"] = Json::object(); }, "merges"},
      {"merge of one", [](Json& d) { d["model"]["merges"] = {"ab"}; }, "merges[0]"},
      {"merge of three", [](Json& d) { d["model"]["merges"] = {"a b c"}; }, "merges[0]"},
      {"merge of numbers", [](Json& d) { d["model"]["merges"] = Json::parse("[[1,2]]"); },
       "merges[0]"},
      {"merge of nothing",
       [](Json& d) {
         d["model"]["vocab"][""] = 300;
         d["model"]["merges"] = Json::parse(R"([["", "a"]])");
       },
       "merges[0]"},
      {"merge of unknown pieces",
       [](Json& d) {
         d["model"]["merges"] = {"a b", "ab xy"};
       },
       "xy"},
      {"merge into an unknown piece", [](Json& d) { d["model"]["merges"] = {"a c"}; }, "ac"},
      {"merge into an added token",
       [](Json& d) {
         d["model"]["vocab"]["<s"] = 300;
         d["model"]["merges"] = {"<s >"};
       },
       "<s>"},
      {"dropout", [](Json& d) { d["model"]["dropout"] = 0.1; }, "dropout"},
      {"dropout a string", [](Json& d) { d["model"]["dropout"] = "no"; }, "dropout"},
      {"unknown token unknown", [](Json& d) { d["model"]["unk_token"] = "<unk>"; }, "unk_token"},
      {"byte_fallback a number", [](Json& d) { d["model"]["byte_fallback"] = 1; }, "byte_fallback"},
      {"added tokens an object", [](Json& d) { d["added_tokens"] = Json::object(); },
       "added_tokens"},
      {"added token without id", [](Json& d) { d["added_tokens"][0].erase("id"); },
       "added_tokens[0].id"},
      {"added token without content", [](Json& d) { d["added_tokens"][0].erase("content"); },
       "added_tokens[0].content"},
      {"added id huge", [](Json& d) { d["added_tokens"][0]["id"] = 1 << 30; }, "id below"},
      {"added id of another piece", [](Json& d) { d["added_tokens"][0]["id"] = 5; }, "id 5"},
      {"added piece with another id", [](Json& d) { d["added_tokens"][0]["content"] = "ab"; },
       "every token once"},
      {"flag a string", [](Json& d) { d["added_tokens"][0]["lstrip"] = "yes"; }, "lstrip"},
      {"unknown normalizer",
       [](Json& d) {
         d["normalizer"] = {{"type", "BertNormalizer"}};
       },
       "BertNormalizer"},
      {"charsmap missing",
       [](Json& d) {
         d["normalizer"] = {{"type", "Precompiled"}};
       },
       "precompiled_charsmap"},
      {"charsmap of null",
       [](Json& d) {
         d["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", nullptr}};
       },
       "precompiled_charsmap"},
      {"charsmap in no base64",
       [](Json& d) {
         d["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AA-="}};
       },
       "base64"},
      {"charsmap cut off",
       [](Json& d) {
         d["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAA"}};
       },
       "base64"},
      {"charsmap without a tree",
       [](Json& d) {
         d["normalizer"] = {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAA=="}};
       },
       "precompiled_charsmap"},
      {"normalizer a string", [](Json& d) { d["normalizer"] = "NFC"; }, "normalizer"},
      {"normalizer without type", [](Json& d) { d["normalizer"] = Json::object(); },
       "normalizer.type"},
      {"unknown pre-tokenizer",
       [](Json& d) {
         d["pre_tokenizer"] = {{"type", "UnicodeScripts"}};
       },
       "UnicodeScripts"},
      {"unknown decoder",
       [](Json& d) {
         d["decoder"] = {{"type", "CTC"}};
       },
       "CTC"},
      {"unknown post-processor",
       [](Json& d) {
         d["post_processor"] = {{"type", "Glue"}};
       },
       "Glue"},
      {"pattern without kind",
       [](Json& d) {
         d["normalizer"] = Json::parse(R"({"type":"Replace","pattern":"a","content":""})");
       },
       "normalizer.pattern"},
      {"pattern that is none",
       [](Json& d) {
         d["normalizer"] =
             Json::parse(R"J({"type":"Replace","pattern":{"Regex":"(a"},"content":""})J");
       },
       "regular expression"},
      {"pattern that cannot be translated",
       [](Json& d) {
         d["normalizer"] =
             Json::parse(R"({"type":"Replace","pattern":{"Regex":"[a&&b]"},"content":""})");
       },
       "&&"},
      {"pattern too long",
       [](Json& d) {
         d["normalizer"] = {{"type", "Replace"},
                            {"pattern", {{"Regex", std::string(100000, 'a')}}},
                            {"content", ""}};
       },
       "regular expression"},
      {"pattern too large once compiled",
       [](Json& d) {
         d["normalizer"] = {{"type", "Replace"},
                            {"pattern", {{"Regex", "((((a{1000}){1000}){1000}){1000})"}}},
                            {"content", ""}};
       },
       "regular expression"},
      {"split behavior unknown",
       [](Json& d) {
         d["pre_tokenizer"] =
             Json::parse(R"({"type":"Split","pattern":{"String":" "},"behavior":"Shred"})");
       },
       "Shred"},
      {"metaspace of two characters",
       [](Json& d) {
         d["pre_tokenizer"] = Json::parse(R"({"type":"Metaspace","replacement":"__"})");
       },
       "one character"},
      {"metaspace scheme unknown",
       [](Json& d) {
         d["pre_tokenizer"] =
             Json::parse(R"({"type":"Metaspace","replacement":"_","prepend_scheme":"sometimes"})");
       },
       "sometimes"},
      {"strip of a word",
       [](Json& d) {
         d["decoder"] = Json::parse(R"({"type":"Strip","content":"ab","start":1,"stop":0})");
       },
       "one character"},
      {"strip of a negative number",
       [](Json& d) {
         d["decoder"] = Json::parse(R"({"type":"Strip","content":"a","start":-1,"stop":0})");
       },
       "decoder.start"},
      {"template without the text",
       [](Json& d) {
         d["post_processor"] =
             Json::parse(R"({"type":"TemplateProcessing","single":[],"special_tokens":{}})");
       },
       "sequence A"},
      {"template with an undefined token",
       [](Json& d) {
         d["post_processor"] = Json::parse(
             R"({"type":"TemplateProcessing","special_tokens":{},"single":
                 [{"SpecialToken":{"id":"<x>"}},{"Sequence":{"id":"A"}}]})");
       },
       "<x>"},
      {"template with an id of no token",
       [](Json& d) {
         d["post_processor"] = Json::parse(
             R"({"type":"TemplateProcessing","special_tokens":{"<x>":{"id":"<x>","ids":[999]}},
                 "single":[{"SpecialToken":{"id":"<x>"}},{"Sequence":{"id":"A"}}]})");
       },
       "999"},
  };
  for (const Broken& one : all) {
    SCOPED_TRACE(one.name);
    Json document = good_document();
    one.spoil(document);
    const std::string message = parse_error(document.dump());
    EXPECT_NE(message.find(one.says), std::string::npos) << message;
    EXPECT_NE(message.find("bad.json"), std::string::npos) << message;
  }
}

TEST(Malformed, EveryFieldOfUnigramIsChecked) {
  const auto document = [] {
    return Json{{"model",
                 {{"type", "Unigram"},
                  {"unk_id", 0},
                  {"vocab", Json::parse(R"([["<unk>", 0], ["a", -1.5], ["", -2]])")}}}};
  };
  EXPECT_EQ(test::make_tokenizer(document())->encode("ab", false), (std::vector<TokenId>{1, 0}));
  const std::vector<Broken> all = {
      {"no list", [](Json& d) { d["model"]["vocab"] = "a"; }, "list of pieces"},
      {"a piece alone", [](Json& d) { d["model"]["vocab"][1] = "a"; }, "vocab[1]"},
      {"three values", [](Json& d) { d["model"]["vocab"][1].push_back(1); }, "vocab[1]"},
      {"score of text", [](Json& d) { d["model"]["vocab"][1][1] = "-1"; }, "vocab[1]"},
      {"piece of a number", [](Json& d) { d["model"]["vocab"][1][0] = 3; }, "vocab[1]"},
      {"piece twice", [](Json& d) { d["model"]["vocab"][1][0] = "<unk>"; }, "every token once"},
      {"long piece", [](Json& d) { d["model"]["vocab"][1][0] = std::string(2049, 'a'); }, "2048"},
      {"unknown id outside", [](Json& d) { d["model"]["unk_id"] = 3; }, "unk_id"},
      {"unknown id below", [](Json& d) { d["model"]["unk_id"] = -1; }, "unk_id"},
      {"unknown id of text", [](Json& d) { d["model"]["unk_id"] = "<unk>"; }, "unk_id"},
      {"fallback a number", [](Json& d) { d["model"]["byte_fallback"] = 1; }, "byte_fallback"},
  };
  for (const Broken& one : all) {
    SCOPED_TRACE(one.name);
    Json broken = document();
    one.spoil(broken);
    const std::string message = parse_error(broken.dump());
    EXPECT_NE(message.find(one.says), std::string::npos) << message;
  }
}

TEST(Malformed, HostilePatternsEndInAnError) {
  // Exponential in the text's length, which no matcher can detect in advance.
  for (const char* const pattern : {"(a|a)*[bc]", "(?:a+)+[bc]", "(?:a?){35}a{35}[bc]"}) {
    SCOPED_TRACE(pattern);
    Json document = good_document();
    document["normalizer"] = {
        {"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", ""}};
    const auto tokenizer = test::make_tokenizer(document);
    try {
      static_cast<void>(tokenizer->encode(std::string(60, 'a'), true));
      ADD_FAILURE() << "it answered";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("match pattern"), std::string::npos) << error.what();
    }
  }
  // A pattern that recurses for every character of a long text: a result or an Error, but no
  // overflow.
  Json document = good_document();
  document["normalizer"] = {
      {"type", "Replace"}, {"pattern", {{"Regex", "(?:(a)(?=.)|b)*[cd]"}}}, {"content", ""}};
  const auto tokenizer = test::make_tokenizer(document);
  try {
    static_cast<void>(tokenizer->encode(std::string(3000, 'a'), true));
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("match pattern"), std::string::npos);
  }
}

// --- GGUF -------------------------------------------------------------------------------------

struct GgufFields {
  std::string model = "gpt2";
  std::string pre = "gpt-2";
  std::vector<std::string> tokens = {"a", "b", "ab", "<s>"};
  std::vector<std::int32_t> types = {1, 1, 1, 3};
  std::vector<float> scores = {0, 0, -1, 0};
  std::vector<std::string> merges = {"a b"};
  std::vector<std::int32_t> charsmap = {};
  std::uint32_t bos = 3;
};

TokenizerParts read(const GgufFields& fields) {
  const auto bytes = test::Gguf()
                         .text("tokenizer.ggml.model", fields.model)
                         .text("tokenizer.ggml.pre", fields.pre)
                         .texts("tokenizer.ggml.tokens", fields.tokens)
                         .array("tokenizer.ggml.token_type", test::kI32, fields.types)
                         .array("tokenizer.ggml.scores", test::kF32, fields.scores)
                         .texts("tokenizer.ggml.merges", fields.merges)
                         .array("tokenizer.ggml.precompiled_charsmap", test::kI32, fields.charsmap)
                         .value("tokenizer.ggml.bos_token_id", test::kU32, fields.bos)
                         .value("tokenizer.ggml.add_bos_token", test::kBool, std::uint8_t{1})
                         .text("tokenizer.chat_template", "{{ messages }}")
                         .bytes();
  return read_gguf_vocabulary(*parse_gguf(bytes, "bad.gguf"), "bad.gguf");
}

// Forty steps that each double a text would turn one letter into a terabyte.
TEST(Malformed, ReplacementsThatGrowWithoutEndAreRefused) {
  const auto forty = [](const Json& step) {
    Json steps = Json::array();
    for (int n = 0; n < 40; ++n) steps.push_back(step);
    return steps;
  };
  const auto refusal = [](const auto& run) -> std::string {
    try {
      run();
    } catch (const Error& error) {
      return error.what();
    }
    return "taken";
  };
  const Json doubling = {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}};
  for (const Json& step : {doubling, Json{{"type", "ByteLevel"}}}) {
    Json document = good_document();
    document["normalizer"] = {{"type", "Sequence"}, {"normalizers", forty(step)}};
    const auto tokenizer = test::make_tokenizer(document);
    EXPECT_NE(refusal([&] { tokenizer->encode("a\xC3\xA4", false); }).find("bytes of text"),
              std::string::npos);
  }
  Json document = good_document();
  document["decoder"] = {{"type", "Sequence"}, {"decoders", forty(doubling)}};
  const auto tokenizer = test::make_tokenizer(document);
  const std::vector<TokenId> ids = tokenizer->encode("a", false);
  EXPECT_NE(refusal([&] { tokenizer->decode(ids); }).find("bytes of text"), std::string::npos);
}

TEST(Malformed, GgufVocabularies) {
  const PipelineTokenizer good(read({}));
  EXPECT_EQ(good.encode("ab<s>a", true), (std::vector<TokenId>{3, 2, 3, 0}));
  EXPECT_EQ(good.chat_template(), "{{ messages }}");
  struct BrokenGguf {
    const char* name;
    std::function<void(GgufFields&)> spoil;
    const char* says;
  };
  const std::vector<BrokenGguf> all = {
      {"unknown kind", [](GgufFields& f) { f.model = std::string("bert"); }, "bert"},
      {"unknown pre-tokeniser", [](GgufFields& f) { f.pre = std::string("gpt-9"); }, "gpt-9"},
      {"no tokens", [](GgufFields& f) { f.tokens.clear(); }, "tokens"},
      {"too few types", [](GgufFields& f) { f.types.pop_back(); }, "token_type"},
      {"a token twice", [](GgufFields& f) { f.tokens[1] = std::string("a"); }, "every token once"},
      {"a token of bad bytes", [](GgufFields& f) { f.tokens[1] = std::string("\xFF"); }, "UTF-8"},
      {"a merge of one", [](GgufFields& f) { f.merges[0] = std::string("ab"); }, "merges"},
      {"a merge of nothing", [](GgufFields& f) { f.merges[0] = std::string(""); }, "merges"},
      {"a merge of unknown pieces", [](GgufFields& f) { f.merges[0] = std::string("a x"); },
       "unknown piece"},
      {"too few scores",
       [](GgufFields& f) {
         f.model = std::string("llama");
         f.scores.pop_back();
       },
       "scores"},
      {"a score that is none",
       [](GgufFields& f) {
         f.model = std::string("llama");
         f.scores[0] = std::numeric_limits<float>::quiet_NaN();
       },
       "NaN"},
      {"t5 with a table that is none",
       [](GgufFields& f) {
         f.model = std::string("t5");
         f.charsmap = {1, 2, 3};
       },
       "precompiled_charsmap"},
      {"t5 with a table of larger numbers",
       [](GgufFields& f) {
         f.model = std::string("t5");
         f.charsmap = {0, 1000};
       },
       "bytes, got 1000"},
      {"t5 with too few scores",
       [](GgufFields& f) {
         f.model = std::string("t5");
         f.scores.pop_back();
       },
       "scores"},
      {"t5 with a long token",
       [](GgufFields& f) {
         f.model = std::string("t5");
         f.tokens[1] = std::string(2049, 'a');
       },
       "2048 bytes"},
      {"a byte token that is none",
       [](GgufFields& f) {
         f.model = std::string("llama");
         f.types[0] = 6;
       },
       "byte token"},
  };
  for (const BrokenGguf& one : all) {
    SCOPED_TRACE(one.name);
    GgufFields fields;
    one.spoil(fields);
    try {
      read(fields);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(one.says), std::string::npos) << message;
      EXPECT_NE(message.find("bad.gguf"), std::string::npos) << message;
    }
  }
}

TEST(Malformed, GgufWithoutATokenizer) {
  const auto bytes = test::Gguf().text("general.architecture", "llama").bytes();
  EXPECT_THROW(read_gguf_vocabulary(*parse_gguf(bytes, "x"), "x"), Error);
}

}  // namespace
}  // namespace outrider
