#include "model/config_section.h"

#include <cstddef>

#include "base/mapped_file.h"

namespace outrider {

using Json = nlohmann::json;

nlohmann::json parse_config(const std::filesystem::path& file) {
  // A model's config is a few kilobytes; what is larger is none, and parsing it would cost memory.
  constexpr std::size_t kLargestFile_bytes = 1 << 20;
  const MappedFile mapped(file);
  if (mapped.bytes().size() > kLargestFile_bytes) {
    throw Error(kReadConfig, file.string(), "at most 1 MiB",
                fmt::format("{} bytes", mapped.bytes().size()));
  }
  const auto* text = reinterpret_cast<const char*>(mapped.bytes().data());
  // Nothing real nests deeper; what does could exhaust the stack of whoever shows it in a message.
  static constexpr int kDeepest = 32;
  const auto check_depth = [&file](int depth, Json::parse_event_t, Json&) {
    if (depth > kDeepest) {
      throw Error(kReadConfig, file.string(), fmt::format("JSON nested at most {} deep", kDeepest),
                  "more");
    }
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, text + mapped.bytes().size(), check_depth);
  } catch (const Json::parse_error& error) {
    throw Error(kReadConfig, file.string(), "JSON text",
                fmt::format("a syntax error at byte {}", error.byte));
  } catch (const Json::exception& error) {
    throw Error(kReadConfig, file.string(), error.what());
  }
  if (!json.is_object()) {
    throw Error(kReadConfig, file.string(), "a JSON object", json.type_name());
  }
  return json;
}

}  // namespace outrider
