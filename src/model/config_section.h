// SPDX-License-Identifier: Apache-2.0
// Typed look-ups in the JSON files that describe models.
#ifndef OUTRIDER_MODEL_CONFIG_SECTION_H_
#define OUTRIDER_MODEL_CONFIG_SECTION_H_

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/files/file_folder.h"
#include "outrider/error.h"

namespace outrider {

inline constexpr std::string_view kReadConfig = "read config";  // the operation in errors

// Parses the JSON object in a file. Throws Error if the file is missing, too large, nested too
// deeply or not a JSON object.
nlohmann::json parse_config(const std::filesystem::path& file);
nlohmann::json parse_config(const FileFolder& folder, std::string_view name);

// A JSON object and its file: typed look-ups whose errors name file and key. A null counts as
// absent, as in files written by Hugging Face.
class ConfigSection {
 public:
  ConfigSection(const nlohmann::json& json, std::string file, std::string prefix = {})
      : json_(&json), file_(std::move(file)), prefix_(std::move(prefix)) {}

  const nlohmann::json* find(const char* key) const {
    const auto entry = json_->find(key);
    return entry == json_->end() || entry->is_null() ? nullptr : &*entry;
  }

  [[noreturn]] void fail(std::string_view key, std::string_view expected,
                         std::string_view got) const {
    throw Error(kReadConfig, file_, fmt::format("{}{} to be {}", prefix_, key, expected), got);
  }

  // The number for `key` as an int; an Error if it is not whole or does not fit. (check_config
  // checks bounds.)
  int whole(std::string_view key, const nlohmann::json& value) const {
    constexpr const char* kExpected = "an integer of at most 31 bits";
    if (!value.is_number_integer()) fail(key, kExpected, shown(value));
    if (value.is_number_unsigned() ? value.get<std::uint64_t>() >
                                         static_cast<std::uint64_t>(std::numeric_limits<int>::max())
                                   : value.get<std::int64_t>() < std::numeric_limits<int>::min()) {
      fail(key, kExpected, shown(value));
    }
    return value.get<int>();
  }
  int whole(const char* key) const { return whole(key, required(key)); }
  int whole_or(const char* key, int otherwise) const {
    const nlohmann::json* value = find(key);
    return value != nullptr ? whole(key, *value) : otherwise;
  }

  double real(const char* key) const {
    const nlohmann::json& value = required(key);
    if (!value.is_number()) fail(key, "a number", shown(value));
    return value.get<double>();
  }
  double real_or(const char* key, double otherwise) const {
    return find(key) != nullptr ? real(key) : otherwise;
  }

  bool flag_or(const char* key, bool otherwise) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) fail(key, "true or false", shown(*value));
    return value->get<bool>();
  }

  std::string text_or(const char* key, std::string otherwise) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) fail(key, "a string", shown(*value));
    return value->get<std::string>();
  }

  // The object under `key`; nullopt if it is absent.
  std::optional<ConfigSection> section(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) fail(key, "an object", shown(*value));
    return ConfigSection(*value, file_, prefix_ + key + ".");
  }

  static std::string shown(const nlohmann::json& value) {
    return value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  }

 private:
  const nlohmann::json& required(const char* key) const {
    const nlohmann::json* value = find(key);
    if (value == nullptr) fail(key, "there", "no such key");
    return *value;
  }

  const nlohmann::json* json_;
  std::string file_;
  std::string prefix_;
};

}  // namespace outrider

#endif  // OUTRIDER_MODEL_CONFIG_SECTION_H_
