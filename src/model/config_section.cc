// SPDX-License-Identifier: Apache-2.0
#include "model/config_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>

#include "base/files/mapped_file.h"

namespace outrider {

using Json = nlohmann::json;

namespace {

// Python writes infinities and NaN as bare words, which are no JSON. They become what transformers
// 5 writes: {"__float__": "Infinity"}.
std::string without_bare_floats(std::string_view text) {
  constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string json;
  json.reserve(text.size());
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    if (!is_quoted) {
      const auto* const word =
          std::find_if(std::begin(kWords), std::end(kWords),
                       [&](std::string_view one) { return text.substr(i).starts_with(one); });
      if (word != std::end(kWords)) {
        json += fmt::format(R"({{"__float__": "{}"}})", *word);
        i += word->size();
        continue;
      }
    }
    if (text[i] == '"') is_quoted = !is_quoted;
    const std::size_t n = is_quoted && text[i] == '\\' && i + 1 < text.size() ? 2 : 1;
    json += text.substr(i, n);
    i += n;
  }
  return json;
}

// name: the file's, for messages.
Json parse(std::string_view bytes, const std::string& name) {
  // A model's config is a few kilobytes. A larger file is something else and would cost memory to
  // parse.
  constexpr std::size_t kLargestFile_bytes = 1 << 20;
  if (bytes.size() > kLargestFile_bytes) {
    throw Error(kReadConfig, name, "at most 1 MiB", fmt::format("{} bytes", bytes.size()));
  }
  const std::string text = without_bare_floats(bytes);
  // Real files nest less; deeper ones could exhaust the stack when shown in a message.
  static constexpr int kDeepest = 32;
  const auto check_depth = [&name](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) {
      throw Error(kReadConfig, name, fmt::format("JSON nested at most {} deep", kDeepest), "more");
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, check_depth);
  } catch (const Json::parse_error& error) {
    throw Error(kReadConfig, name, "JSON text",
                fmt::format("a syntax error at byte {}", error.byte));
  } catch (const Json::exception& error) {
    throw Error(kReadConfig, name, error.what());
  }
  if (!json.is_object()) throw Error(kReadConfig, name, "a JSON object", json.type_name());
  return json;
}

}  // namespace

Json parse_config(const std::filesystem::path& file) {
  return parse(FileText(MappedFile(file)).text(), file.string());
}

Json parse_config(const FileFolder& folder, std::string_view name) {
  return parse(folder.read(name).text(), folder.place(name));
}

}  // namespace outrider
