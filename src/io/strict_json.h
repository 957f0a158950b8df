// SPDX-License-Identifier: Apache-2.0
// Reads untrusted JSON with nlohmann_json's event interface. Its parser keeps no stack of its own,
// so deep nesting is harmless unless a handler stores it.
//
// StrictJsonHandler turns every event that a format does not expect into a clear Error. A subclass
// overrides the events that it accepts, and `expected()`, which describes what is allowed at the
// current place. Not thread-safe; one handler reads one text.
#ifndef OUTRIDER_IO_STRICT_JSON_H_
#define OUTRIDER_IO_STRICT_JSON_H_

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "outrider/error.h"

namespace outrider {

// No header or index is larger: the limit of the safetensors reference reader.
inline constexpr std::size_t kLongestJson = 100'000'000;

class StrictJsonHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  // `operation` must outlive the handler; `description` is the file.
  StrictJsonHandler(std::string_view operation, std::string description)
      : operation_(operation), description_(std::move(description)) {}

  // Reads all of `text`; throws Error if it is not JSON or not what the subclass expects.
  void read(std::string_view text) {
    // For the lexer a zero byte is the end of its input; it would ignore the rest.
    if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
      throw Error(operation_, description_, "JSON text", fmt::format("a zero byte at {}", zero));
    }
    nlohmann::json::sax_parse(text.data(), text.data() + text.size(), this);
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool value) override { return unexpected(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { return unexpected(fmt::to_string(value)); }
  bool number_unsigned(std::uint64_t value) override { return unexpected(fmt::to_string(value)); }
  bool number_float(double, const std::string& text) override { return unexpected(text); }
  bool string(std::string& value) override { return unexpected(fmt::format("'{}'", value)); }
  bool binary(nlohmann::json::binary_t&) override { return unexpected("binary data"); }
  bool start_object(std::size_t) override { return unexpected("an object"); }
  bool key(std::string& key) override { return unexpected(fmt::format("key '{}'", key)); }
  bool end_object() override { return unexpected("the end of an object"); }
  bool start_array(std::size_t) override { return unexpected("an array"); }
  bool end_array() override { return unexpected("the end of an array"); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    throw Error(operation_, description_, "JSON text",
                fmt::format("a syntax error at byte {}", position));
  }

 protected:
  struct Expectation {
    std::string object;  // where in the file, for the error message
    std::string what;
  };
  virtual Expectation expected() const = 0;

  [[noreturn]] bool unexpected(std::string_view got) const {
    const Expectation here = expected();
    throw Error(operation_, here.object, here.what, got);
  }

  std::string_view operation() const { return operation_; }
  const std::string& description() const { return description_; }

 private:
  std::string_view operation_;
  std::string description_;
};

}  // namespace outrider

#endif  // OUTRIDER_IO_STRICT_JSON_H_
