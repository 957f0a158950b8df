// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/data_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "eval/metrics/words.h"
#include "eval/tasks/json_text.h"
#include "outrider/error.h"
#include "tokenizer/texts/utf8.h"

namespace outrider::eval {
namespace {

using nlohmann::json;
constexpr const char* kOperation = "read item";

std::string_view take_line(std::string_view& rest) {
  const std::size_t newline = rest.find('\n');
  std::string_view line = rest.substr(0, newline);
  rest = newline == std::string_view::npos ? std::string_view() : rest.substr(newline + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void add_problem(DataSet& set, const Error& problem) {
  set.problems.push_back({.number = set.n_items++, .text = problem.what()});
}

// Adds the item if it is an object, otherwise a problem.
void add(DataSet& set, json fields, std::string place) {
  if (!fields.is_object()) {
    add_problem(set, Error(kOperation, place, "a JSON object",
                           fields.is_discarded() ? "malformed JSON" : fields.type_name()));
    return;
  }
  set.items.push_back(
      {.number = set.n_items++, .place = std::move(place), .fields = std::move(fields)});
}

// Whether an item's text is UTF-8; if not, adds a problem for that item.
bool is_text(std::string_view text, const std::string& place, DataSet& set) {
  const Utf8Scan scan = scan_utf8(text);
  if (scan.n_bad == 0) return true;
  const auto byte = static_cast<unsigned char>(text[scan.n_valid]);
  add_problem(set, Error(kOperation, place, "UTF-8 text", fmt::format("byte 0x{:02X}", byte)));
  return false;
}

void read_jsonl(std::string_view text, const std::string& file, DataSet& set) {
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view bytes = take_line(text);
    if (is_blank(bytes)) continue;
    const std::string place = fmt::format("{}, line {}", file, line);
    if (is_text(bytes, place, set)) add(set, parse_json(bytes), place);
  }
}

// Refuses compressed and other binary files, which have no lines to name. Text has no zero bytes;
// binary formats have one within their first few hundred bytes.
void refuse_binary(std::string_view bytes, const std::string& file) {
  constexpr std::size_t kLooked_bytes = 4096;
  if (bytes.starts_with("\x1f\x8b")) {
    throw Error("read data", file, "text", "gzip's format (gzip -d makes it text)");
  }
  if (bytes.substr(0, kLooked_bytes).find('\0') != std::string_view::npos) {
    throw Error("read data", file, "text", "zero bytes");
  }
}

json parse_whole(std::string_view text, const std::string& file, const char* expected) {
  require_utf8(text, "read data", file);
  json value = parse_json(text);
  if (value.is_discarded()) throw Error("read data", file, expected, "malformed JSON");
  return value;
}

void read_json(std::string_view text, const std::string& file, DataSet& set) {
  constexpr const char* kExpected = "a list of objects";
  json value = parse_whole(text, file, kExpected);
  if (!value.is_array()) throw Error("read data", file, kExpected, value.type_name());
  for (json& element : value) {
    add(set, std::move(element), fmt::format("{}, item {}", file, set.n_items + 1));
  }
}

void read_lines(const std::vector<std::string>& texts, const std::vector<std::string>& files,
                const std::vector<std::string>& fields, DataSet& set) {
  std::vector<std::string_view> rest(texts.begin(), texts.end());
  for (int line = 1;; ++line) {
    std::size_t n_ended = 0;
    std::size_t ended = 0;
    for (std::size_t f = 0; f < rest.size(); ++f) {
      if (!rest[f].empty()) continue;
      ++n_ended;
      ended = f;
    }
    if (n_ended == rest.size()) return;
    if (n_ended > 0) {
      throw Error("read data", files[ended], "as many lines as the files beside it",
                  fmt::format("{}", line - 1));
    }
    json item = json::object();
    bool is_whole = true;
    for (std::size_t f = 0; f < rest.size(); ++f) {
      const std::string_view text = take_line(rest[f]);
      is_whole = is_whole && is_text(text, fmt::format("{}, line {}", files[f], line), set);
      if (is_whole) item[fields[f]] = text;
    }
    if (is_whole) add(set, std::move(item), fmt::format("{}, line {}", files.front(), line));
  }
}

void read_documents(std::string_view text, const std::string& file, const std::string& separator,
                    DataSet& set) {
  while (!text.empty()) {
    const std::size_t end = text.find(separator);
    const std::string_view whole = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + separator.size());
    const std::u32string document = characters(whole);
    const std::u32string_view stripped = strip(document);
    if (stripped.empty()) continue;
    const std::string place = fmt::format("{}, document {}", file, set.n_items + 1);
    if (is_text(whole, place, set)) add(set, {{"text", to_utf8(stripped)}}, place);
  }
}

void read_squad(std::string_view text, const std::string& file, DataSet& set) {
  const json whole = parse_whole(text, file, "SQuAD's JSON");
  // Every level must exist; an error below a single question is that item's problem.
  const auto list_in = [&](const json& value, const char* key) -> const json& {
    if (!value.is_object() || !value.contains(key) || !value[key].is_array()) {
      throw Error("read data", file, fmt::format("SQuAD's JSON with lists \"{}\"", key), "none");
    }
    return value[key];
  };
  for (const json& article : list_in(whole, "data")) {
    for (const json& paragraph : list_in(article, "paragraphs")) {
      for (const json& question : list_in(paragraph, "qas")) {
        json item = json::object();
        if (article.contains("title")) item["title"] = article["title"];
        if (paragraph.contains("context")) item["context"] = paragraph["context"];
        if (question.is_object()) item.update(question);
        json answers = json::array();
        if (item.contains("answers") && item["answers"].is_array()) {
          for (const json& answer : item["answers"]) {
            if (answer.is_object() && answer.contains("text")) answers.push_back(answer["text"]);
          }
          // A question without an answer expects an empty one.
          if (answers.empty()) answers.push_back("");
          item["answers"] = std::move(answers);
        }
        add(set, std::move(item), fmt::format("{}, question {}", file, set.n_items + 1));
      }
    }
  }
}

}  // namespace

std::string read_data_file(const std::string& file) {
  const auto fail = [&] { throw Error("read file", file, std::strerror(errno)); };
  struct CloseFile {
    int descriptor;
    ~CloseFile() {
      if (descriptor >= 0) ::close(descriptor);
    }
  };
  const CloseFile opened{::open(file.c_str(), O_RDONLY | O_CLOEXEC)};
  if (opened.descriptor < 0) fail();
  // Against endless device files; the largest common data sets have a hundredth of it.
  constexpr std::size_t kLongest_bytes = std::size_t{1} << 30;
  std::string text;
  std::vector<char> buffer(1 << 16);
  for (;;) {
    const ssize_t n_read = ::read(opened.descriptor, buffer.data(), buffer.size());
    if (n_read == 0) return text;
    if (n_read < 0 && errno == EINTR) continue;
    if (n_read < 0) fail();
    text.append(buffer.data(), static_cast<std::size_t>(n_read));
    if (text.size() > kLongest_bytes) {
      throw Error("read file", file, fmt::format("at most {} bytes", kLongest_bytes), "more");
    }
  }
}

DataSet read_data(const DataLayout& layout, const std::vector<std::string>& files) {
  using Format = DataLayout::Format;
  const std::size_t n_expected = layout.format == Format::lines ? layout.fields.size() : 1;
  if (files.size() != n_expected) {
    throw UsageError("read data", "--data",
                     layout.format == Format::lines
                         ? fmt::format("{} files ({})", n_expected, fmt::join(layout.fields, ", "))
                         : "one file",
                     fmt::format("{}", files.size()));
  }
  DataSet set;
  set.digest = 0xcbf29ce484222325U;
  std::vector<std::string> texts;
  for (const std::string& file : files) {
    texts.push_back(read_data_file(file));
    refuse_binary(texts.back(), file);
    for (const char c : texts.back()) {
      set.digest = (set.digest ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
    }
  }
  switch (layout.format) {
    case Format::jsonl:
      read_jsonl(texts.front(), files.front(), set);
      break;
    case Format::json:
      read_json(texts.front(), files.front(), set);
      break;
    case Format::lines:
      read_lines(texts, files, layout.fields, set);
      break;
    case Format::documents:
      read_documents(texts.front(), files.front(), layout.separator, set);
      break;
    case Format::squad:
      read_squad(texts.front(), files.front(), set);
      break;
  }
  return set;
}

}  // namespace outrider::eval
