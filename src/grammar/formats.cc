#include "grammar/formats.h"

#include <array>

namespace outrider {
namespace {

// A day of a year from 0001 to 9999 that there is: the 29th of February in leap years alone.
std::string date() {
  const std::string year = "(?:000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})";
  const std::string leap_in_century = "(?:0[48]|[2468][048]|[13579][26])";
  const std::string leap_year =
      "(?:[0-9]{2}" + leap_in_century + "|(?:0[48]|[2468][048]|[13579][26])00)";
  return "(?:" + year +
         "-(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])"
         "|(?:0[13-9]|1[0-2])-(?:29|30)"
         "|(?:0[13578]|1[02])-31)|" +
         leap_year + "-02-29)";
}

// Of RFC 3339, without leap seconds: on which days there is one no expression can know.
std::string time() {
  const std::string hour = "(?:[01][0-9]|2[0-3])";
  return hour + ":[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-]" + hour + ":[0-5][0-9])";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return "(?:" + byte + "\\.){3}" + byte;
}

constexpr std::array<std::string_view, 5> kFormats = {"date", "time", "date-time", "uuid", "ipv4"};

}  // namespace

std::optional<std::string> expression_of_format(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return date() + "T" + time();
  if (format == "uuid") return "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  if (format == "ipv4") return ipv4();
  return std::nullopt;
}

std::vector<std::string_view> known_formats() { return {kFormats.begin(), kFormats.end()}; }

}  // namespace outrider
