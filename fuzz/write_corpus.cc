// SPDX-License-Identifier: Apache-2.0
// Writes the seed files of the readers' fuzz targets, or checks that the committed files equal what
// it would write. Files with other names in the same folders (fuzzers' findings) are left alone.
//
//   write_corpus FOLDER            writes FOLDER/safetensors/..., FOLDER/gguf/... and so on
//   write_corpus --check FOLDER    compares
#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/checksum.h"
#include "io/datastore.h"
#include "io/test_files.h"

namespace {

using std::string_view_literals::operator""sv;

using outrider::test::append;
using outrider::test::Bytes;
using outrider::test::Gguf;
using outrider::test::safetensors;
using outrider::test::to_bytes;
namespace gguf = outrider::test;

Bytes counting_bytes(std::size_t n) {
  Bytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

// Every type, each with a matrix of two rows and three columns.
Bytes safetensors_of_every_type() {
  const std::vector<std::pair<std::string, std::size_t>> types = {
      {"F64", 8},  {"I64", 8}, {"F32", 4}, {"I32", 4}, {"F16", 2},
      {"BF16", 2}, {"I16", 2}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
  std::string header = R"({"__metadata__":{"format":"pt","made by":"\"us\""})";
  std::size_t begin = 0;
  for (const auto& type : types) {
    const std::size_t end = begin + 6 * type.second;
    header += fmt::format(R"(,"{}":{{"dtype":"{}","shape":[2,3],"data_offsets":[{},{}]}})",
                          "weight." + type.first, type.first, begin, end);
    begin = end;
  }
  return safetensors(header + "}   ", counting_bytes(begin));
}

Bytes gguf_of_every_value() {
  return Gguf()
      .value("general.u8", gguf::kU8, std::uint8_t{200})
      .value("general.i8", gguf::kI8, std::int8_t{-100})
      .value("general.u16", gguf::kU16, std::uint16_t{60000})
      .value("general.i16", gguf::kI16, std::int16_t{-30000})
      .value("general.u32", gguf::kU32, std::uint32_t{4000000000})
      .value("general.i32", gguf::kI32, std::int32_t{-2000000000})
      .value("general.f32", gguf::kF32, 0.5f)
      .value("general.bool", gguf::kBool, std::uint8_t{1})
      .text("general.name", "seed")
      .value("general.u64", gguf::kU64, UINT64_MAX)
      .value("general.i64", gguf::kI64, INT64_MIN)
      .value("general.f64", gguf::kF64, 0.1)
      .array<std::uint8_t>("u8s", gguf::kU8, {1, 2, 3})
      .array<std::int8_t>("i8s", gguf::kI8, {-1, 2})
      .array<std::uint16_t>("u16s", gguf::kU16, {1, 2})
      .array<std::int16_t>("i16s", gguf::kI16, {-1, 2})
      .array<std::uint32_t>("u32s", gguf::kU32, {1})
      .array<std::int32_t>("i32s", gguf::kI32, {-1})
      .array<float>("f32s", gguf::kF32, {0.25f, -1.0f})
      .array<std::uint8_t>("bools", gguf::kBool, {1, 0, 1})
      .texts("texts", {"x", "", "yz"})
      .array<std::uint64_t>("u64s", gguf::kU64, {1, UINT64_MAX})
      .array<std::int64_t>("i64s", gguf::kI64, {1, -1})
      .array<double>("f64s", gguf::kF64, {1e300})
      .bytes();
}

// The number, elements and bytes of a block for every type that the reader knows.
struct Block {
  std::uint32_t type;
  std::uint64_t elements;
  std::size_t bytes;
};
constexpr Block kBlocks[] = {{0, 1, 4},   {1, 1, 2},      {2, 32, 18}, {3, 32, 20},
                             {8, 32, 34}, {14, 256, 210}, {24, 1, 1},  {25, 1, 2},
                             {26, 1, 4},  {27, 1, 8},     {28, 1, 8},  {30, 1, 2}};

Bytes gguf_of_every_tensor_type() {
  Gguf file;
  file.text("general.architecture", "llama");
  for (const Block& block : kBlocks) {
    file.tensor(fmt::format("blk.0.type_{}.weight", block.type), {block.elements, 2}, block.type,
                counting_bytes(2 * block.bytes));
  }
  return file.bytes();
}

Bytes gguf_of_alignment(std::uint32_t alignment, std::uint32_t version) {
  Gguf file;
  file.alignment = alignment;
  file.version = version;
  return file.value("general.alignment", gguf::kU32, alignment)
      .tensor("a", {2, 1, 3, 1}, 0, counting_bytes(24))
      .tensor("b", {5}, 24, counting_bytes(5))
      .bytes();
}

Bytes gguf_vocabulary() {
  return Gguf()
      .text("tokenizer.ggml.model", "llama")
      .texts("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>", "\xe2\x96\x81", "a", "<0x0A>"})
      .array<float>("tokenizer.ggml.scores", gguf::kF32, {0, 0, 0, -1, -2, 0})
      .array<std::int32_t>("tokenizer.ggml.token_type", gguf::kI32, {2, 3, 3, 1, 1, 6})
      .value("tokenizer.ggml.bos_token_id", gguf::kU32, std::uint32_t{1})
      .bytes();
}

Bytes sentencepiece_model(int kind, bool byte_fallback) {
  using outrider::test::Protobuf;
  outrider::test::SentencePieces file;
  file.piece("<unk>", 0, 2)
      .piece("<s>", 0, 3)
      .piece("</s>", 0, 3)
      .piece("\xe2\x96\x81", -2)
      .piece("a", -3)
      .piece(
          "\xe2\x96\x81"
          "a",
          -1)
      .piece("aa", -1.5f)
      .piece("<sep>", 0, 4);
  if (kind == 1) file.piece("ar", -4, 5);
  for (int byte = 0; byte < 256 && byte_fallback; ++byte) {
    file.piece(fmt::format("<0x{:02X}>", byte), 0, 6);
  }
  file.trainer(Protobuf().integer(3, kind).integer(35, byte_fallback ? 1 : 0).text(46, "<s>"));
  if (!byte_fallback) {
    const auto map = outrider::test::charsmap({{"\xef\xac\x81", "fi"}, {"\t", " "}});
    file.normalizer(Protobuf().text(2, map).integer(4, 1));
  }
  return to_bytes(file.bytes());
}

// One part of a datastore in a writer's layout.
struct StoreSegment {
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> suffixes;
};

Bytes datastore(const std::vector<StoreSegment>& segments, std::uint32_t vocabulary_size) {
  using outrider::checksum;
  using outrider::Datastore;
  Bytes content;
  Bytes table;
  std::uint64_t n_suffixes = 0;
  for (const StoreSegment& segment : segments) {
    Bytes tokens;
    for (const std::uint32_t token : segment.tokens) {
      for (int shift = 24; shift >= 0; shift -= 8) {
        tokens.push_back(static_cast<std::byte>(token >> shift));
      }
    }
    Bytes suffixes;
    for (const std::uint32_t place : segment.suffixes) append(suffixes, place);
    append(table, static_cast<std::uint32_t>(segment.tokens.size()));
    append(table, static_cast<std::uint32_t>(segment.suffixes.size()));
    append(table, checksum(suffixes, checksum(tokens)));
    content.insert(content.end(), tokens.begin(), tokens.end());
    content.insert(content.end(), suffixes.begin(), suffixes.end());
    n_suffixes += segment.suffixes.size();
  }
  Bytes file = to_bytes(Datastore::kMagic);
  append(file, Datastore::kVersion);
  append(file, static_cast<std::uint32_t>(segments.size()));
  append(file, std::uint64_t{0x0123456789abcdef});
  append(file, vocabulary_size);
  append(file, std::uint32_t{0});
  append(file, n_suffixes);
  append(file, std::uint64_t{1});
  append(file, std::uint64_t{Datastore::kHeader_bytes + content.size()});
  append(file, checksum(table));
  append(file, checksum(file));
  file.insert(file.end(), content.begin(), content.end());
  file.insert(file.end(), table.begin(), table.end());
  return file;
}

// A text of a verdict log: a prompt of one token and a row for each token after it.
Bytes verdict_record(const std::vector<std::int32_t>& generated, int n_kept) {
  Bytes payload;
  append(payload, std::uint32_t{1});
  append(payload, static_cast<std::uint32_t>(generated.size()));
  append(payload, std::int32_t{0});
  for (const std::int32_t token : generated) append(payload, token);
  for (const std::int32_t token : generated) {
    append(payload, -1.5F);
    for (int k = 0; k < n_kept; ++k) append(payload, (token + k) % 9);
    for (int k = 0; k < n_kept; ++k) append(payload, -0.5F - static_cast<float>(k));
  }
  Bytes record;
  append(record, std::uint64_t{payload.size()});
  append(record, outrider::checksum(payload));
  record.insert(record.end(), payload.begin(), payload.end());
  return record;
}

// A segment of nine tokens.
Bytes verdict_segment(int n_kept, const std::vector<Bytes>& records) {
  Bytes file = to_bytes("OUTRVLOG");
  append(file, std::uint32_t{1});
  append(file, std::int32_t{9});
  append(file, std::int32_t{n_kept});
  append(file, std::int32_t{9});
  append(file, std::uint64_t{0x0123456789abcdef});
  for (const Bytes& record : records) file.insert(file.end(), record.begin(), record.end());
  return file;
}

Bytes torn(Bytes bytes) {
  bytes.resize(bytes.size() - 3);
  return bytes;
}

// Templates that together use most of the language.
constexpr std::string_view kConversation =
    "{{- bos_token }}{% for message in messages if message.role != 'system' %}\n"
    "  {%- set content = message['content'] | trim %}\n"
    "  {%- if (message.role == 'user') and not loop.first or loop.index0 % 2 == 0 %}\n"
    "{{ '<|' ~ message.role + '|>\\n' + content }}{% if not loop.last %}{{ eos_token }}{% endif "
    "%}\n"
    "  {%- elif message.tool_calls is defined %}{% for call in message.tool_calls %}\n"
    "{{ call.function.arguments | tojson(indent=2) }}{{ loop.length }}{% endfor %}\n"
    "  {%- else %}{{ raise_exception('role ' ~ message.role) }}{% endif %}\n"
    "{% else %}nothing{% endfor %}{# end #}{% raw %}{{ raw }}{% endraw %}";
constexpr std::string_view kCalls =
    "{% macro walk(value, level=0) %}{% for key, inner in value|dictsort %}"
    "{{ '  ' * level ~ key }}:{% if inner is mapping %}{{ walk(inner, level + 1) }}"
    "{% else %}{{ inner }}{% endif %}{% endfor %}{{ varargs }}{{ kwargs }}{% endmacro %}"
    "{% macro frame() %}<{{ caller(1, b=2) }}>{% endmacro %}"
    "{{ walk(tools[0], 1, 2, k=3) }}{% call(a, b) frame() %}{{ a + b }}{% endcall %}"
    "{% set ns = namespace(n=0, l=[]) %}{% for i in range(5) %}{% set ns.n = ns.n + i %}"
    "{% set ns.l = ns.l + [i] %}{% if i == 3 %}{% break %}{% endif %}{% continue %}{% endfor %}"
    "{{ ns.l[::-1] }}{{ ns.n // 2 ** 2 }}{% filter upper %}a{% endfilter %}"
    "{% set block %}b{{ n }}{% endset %}{{ block }}{% generation %}g{% endgeneration %}"
    "{% with q = 1 %}{{ q }}{% endwith %}"
    "{% for x in [[1, [2]], 3] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}";
constexpr std::string_view kFilters =
    "{{ l|sort|join(',') }}{{ messages|map(attribute='role')|unique|list }}"
    "{{ messages|selectattr('role', 'equalto', 'user')|list|length }}{{ l|batch(2, 0)|list }}"
    "{{ l|slice(2)|list }}{{ messages|groupby('role')|list }}{{ s|title|center(9) }}"
    "{{ '%5.2f|%-4s|%(a)s' % {'a': 1} }}{{ '{:>5}{0[k]!r}'.format({'k': 1}) }}{{ x|round(1) }}"
    "{{ '12'|int + '1.5'|float }}{{ s[1:-1:2] }}{{ s.split('e', 1)[-1].replace('t', 'd') }}"
    "{{ 'a\\u00e9\\x41'|upper|reverse }}{{ l|sum }}{{ l|max }}{{ 'a\\nb'|indent(2, true) }}"
    "{{ strftime_now('%d %b %Y %j %V') }}{{ missing|default('d') }}{{ tools|tojson }}"
    "{{ 1 < n <= 3 and n in l or not s is none }}{{ l|reverse|map('string')|first }}";

// A grammar's language (0: GBNF, 1: JSON Schema, 2: regular expressions), its text, and a text to
// match.
Bytes grammar(char language, std::string_view text, std::string_view matched) {
  return to_bytes(std::string(1, language) + std::string(text) + '\0' + std::string(matched));
}

constexpr std::string_view kGbnf =
    "root ::= (item \", \")* item? # a list\nitem ::= [a-z\\x41-Z]{2,4} | \"(\" root \")\" |\n  "
    "[^\\u00e9]+ \".\"\n";
constexpr std::string_view kSchema =
    R"({"$defs":{"n":{"type":"object","properties":{"k":{"const":"a"},"v":{"$ref":"#/$defs/n"}}}},)"
    R"("oneOf":[{"type":"array","items":{"type":"integer","minimum":-3,"maximum":120},"maxItems":3},)"
    R"({"type":"string","pattern":"^[a-z]+$"}],"allOf":[{"anyOf":[{"type":["array","null"]},)"
    R"({"$ref":"#/$defs/n"},{"type":"string","format":"date"}]}]})";
constexpr std::string_view kExpression = R"((?:a|[^b-d\s]{2,}|\u00e9?)*(x{0,3}\.|\d+)$)";

std::map<std::string, Bytes> seeds() {
  return {
      {"grammar/gbnf", grammar(0, kGbnf, "ab, (cd, ef)")},
      {"grammar/json_schema", grammar(1, kSchema, "[1, -2, 120]")},
      {"grammar/properties",
       grammar(
           1,
           R"({"type":"object","properties":{"a":{"type":"string","minLength":1,"maxLength":9},)"
           R"("b":{"enum":[1,"x"]}},"required":["b"],"additionalProperties":{"type":"number"}})",
           R"({"a": "q", "b": 1})")},
      {"grammar/regex", grammar(2, kExpression, "azz7")},
      {"template/conversation", to_bytes(std::string(kConversation))},
      {"template/calls", to_bytes(std::string(kCalls))},
      {"template/filters", to_bytes(std::string(kFilters))},
      {"template/variables",
       to_bytes(std::string("{{ a }}{{ b.c[0] }}{{ d|tojson }}") + '\0' +
                R"({"a": 1, "b": {"c": ["\u00e9", -1.5e3]}, "d": [null, true, {}]})")},
      // The format, flags, a number that selects the cuts, and the text (reply_fuzz.cc).
      {"reply/hermes", to_bytes("\0\3\5 Let me.\n<tool_call>\n{\"name\": \"f\", \"arguments\": "
                                "{\"a\": [1, \"x\\n\"]}}\n</tool_call>\n<think>b</think> c"sv)},
      {"reply/llama", to_bytes("\1\1\7{\"name\": \"f\", \"parameters\": {\"a\": -1.5e3}}; "
                               "{\"type\": \"function\", \"name\": \"g\", \"parameters\": {}}"sv)},
      {"reply/mistral", to_bytes("\2\0\1a [TOOL_CALLS]f[CALL_ID]i1[ARGS]{\"a\": null}"
                                 "[TOOL_CALLS][{\"name\": \"g\", \"id\": \"x\"}]"sv)},
      {"reply/deepseek",
       to_bytes(
           "\3\7\3Hm.</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n"
           "```json\n{}\n```<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{\"b\": true}"
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"sv)},
      {"reply/qwen3_coder",
       to_bytes("\4\1\2<tool_call>\n<function=f>\n<parameter=a>\n\"x\n</parameter>\n"
                "<parameter=n>\n3\n</parameter>\n</function>\n</tool_call>"sv)},
      {"reply/gemma",
       to_bytes("\5\1\4[f(a='x\\u00e9', n=-2., l=[1, (True, None)]), g({'k': 1})]"sv)},
      {"reply/gemma_fence", to_bytes("\5\0\4```tool_code\nf(a=\"x\")\ng()\n```"sv)},
      {"reply/functiongemma",
       to_bytes("\6\1\4<start_function_call>call:f{a:<escape>x}<escape>,l:[1,{b:c d}],\"q\":\"}\"}"
                "<end_function_call>"sv)},
      {"reply/command", to_bytes("\7\0\4<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": "
                                 "\"f\", \"parameters\": {}}, {\"name\": \"g\"}]<|END_ACTION|>"sv)},
      {"reply/glm",
       to_bytes("\11\1\3Hm.\n<tool_call>f\n<arg_key>a</arg_key>\n<arg_value> x\n</arg_value>\n"
                "<arg_key>n</arg_key><arg_value>[1, 'y']</arg_value></tool_call><tool_call>g\n"
                "</tool_call>"sv)},
      {"reply/lfm2",
       to_bytes("\12\1\2<|tool_call_start|>[f(a=\"\\/\\ud83d\\ude00\", n=null)]<|tool_call_end|>"
                "<|tool_call_start|>[{\"name\": \"g\"}]<|tool_call_end|>"sv)},
      {"safetensors/every_type", safetensors_of_every_type()},
      {"safetensors/none", safetensors("{}", {})},
      {"safetensors/scalar_and_empty",
       safetensors(R"({"e":{"dtype":"I64","shape":[7,0],"data_offsets":[0,0]},)"
                   R"("s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                   counting_bytes(4))},
      {"safetensors/overlap", safetensors(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
                                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
                                          counting_bytes(6))},
      {"gguf/every_value", gguf_of_every_value()},
      {"gguf/every_tensor_type", gguf_of_every_tensor_type()},
      {"gguf/alignment_8", gguf_of_alignment(8, 3)},
      {"gguf/version_2", gguf_of_alignment(64, 2)},
      {"gguf/vocabulary", gguf_vocabulary()},
      {"gguf/none", Gguf().bytes()},
      {"sentencepiece/unigram", sentencepiece_model(1, false)},
      {"sentencepiece/unigram_bytes", sentencepiece_model(1, true)},
      {"sentencepiece/bpe", sentencepiece_model(2, false)},
      {"datastore/one_segment",
       datastore({{{5, 70000, 5, 70000, 9, 0xFFFFFFFF}, {0, 2, 4, 1, 3}}}, 100000)},
      {"datastore/two_segments",
       datastore({{{1, 2, 1, 3, 0xFFFFFFFF}, {0, 2, 1}}, {{3, 0xFFFFFFFF}, {0}}}, 4)},
      {"datastore/separators_only", datastore({{{0xFFFFFFFF}, {}}}, 1)},
      {"verdict_log/none", verdict_segment(1, {})},
      {"verdict_log/two_texts",
       verdict_segment(2, {verdict_record({3, 8, 1}, 2), verdict_record({5}, 2)})},
      {"verdict_log/torn",
       torn(verdict_segment(1, {verdict_record({2, 2}, 1), verdict_record({4, 4}, 1)}))},
  };
}

Bytes read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return to_bytes(std::string(std::istreambuf_iterator<char>(file), {}));
}

bool write(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string(argv[1]) == "--check";
  if (argc != 2 && !check) {
    fmt::print(stderr, "usage: {} [--check] FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[argc - 1];
  int status = 0;
  for (const auto& seed : seeds()) {
    const auto path = folder / seed.first;
    const bool good = check ? read(path) == seed.second : write(path, seed.second);
    if (good) continue;
    fmt::print(stderr, "{}: {}\n", path.string(),
               check ? "differs from what write_corpus makes" : "cannot be written");
    status = 1;
  }
  return status;
}
