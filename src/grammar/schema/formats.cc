// SPDX-License-Identifier: Apache-2.0
#include "grammar/schema/formats.h"

#include <array>

namespace outrider {
namespace {

// An existing day of the years 0001 to 9999: the 29th of February only in leap years.
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

// RFC 3339, without leap seconds: an expression cannot know the days that have one.
std::string time() {
  const std::string hour = "(?:[01][0-9]|2[0-3])";
  return hour + ":[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?(?:Z|[+-]" + hour + ":[0-5][0-9])";
}

std::string ipv4() {
  const std::string byte = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  return "(?:" + byte + "\\.){3}" + byte;
}

constexpr const char* kHexGroup = "[0-9A-Fa-f]{1,4}";

// RFC 4291, without forms that contain an IPv4 address.
std::string ipv6() {
  const std::string h = kHexGroup;
  std::string all = "(?:(?:" + h + ":){7}" + h + "|(?:" + h + ":){1,7}:|:(?::" + h + "){1,7}|::";
  for (int n = 1; n <= 6; ++n) {  // n groups, ::, and the rest of seven
    const std::string before = "(?:" + h + ":){" + std::to_string(n) + "}";
    all += "|" + before + "(?::" + h + "){1," + std::to_string(7 - n) + "}";
  }
  return all + ")";
}

// At most four labels of at most 63 letters, so all names have at most 255.
constexpr const char* kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
std::string hostname() { return std::string(kLabel) + "(?:\\." + kLabel + "){0,3}"; }

// RFC 5321, with the characters that all implementations accept.
std::string email() {
  const std::string word = "[A-Za-z0-9_+-]{1,20}";
  return word + "(?:\\." + word + "){0,2}@(?:" + std::string(kLabel) + "\\.){1,3}[A-Za-z]{2,24}";
}

// RFC 3986, without user names.
std::string uri() {
  const std::string sign = "(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-F]{2})";
  const std::string host = "(?:" + hostname() + "|\\[" + ipv6() + "\\])(?::[0-9]{1,4})?";
  const std::string path = "(?:/" + sign + "*)*";
  return "(?:[A-Za-z][A-Za-z0-9+.-]*:(?://" + host + path + "|" + sign + "+" + path + ")|file://" +
         path + ")(?:\\?(?:" + sign + "|[/?])*)?(?:#(?:" + sign + "|[/?])*)?";
}

// RFC 3339: each part with the next smaller one, or with none.
std::string duration() {
  const std::string n = "[0-9]{1,9}";
  const std::string second = n + "S";
  const std::string minute = n + "M(?:" + second + ")?";
  const std::string hour = n + "H(?:" + minute + ")?";
  const std::string in_day = "T(?:" + hour + "|" + minute + "|" + second + ")";
  const std::string day = n + "D";
  const std::string month = n + "M(?:" + day + ")?";
  const std::string year = n + "Y(?:" + month + ")?";
  return "P(?:(?:" + year + "|" + month + "|" + day + ")(?:" + in_day + ")?|" + in_day + "|" + n +
         "W)";
}

constexpr std::array<std::string_view, 10> kFormats = {
    "date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "uri"};

}  // namespace

std::optional<std::string> expression_of_format(std::string_view format) {
  if (format == "date") return date();
  if (format == "time") return time();
  if (format == "date-time") return date() + "T" + time();
  if (format == "uuid") return "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
  if (format == "duration") return duration();
  if (format == "ipv4") return ipv4();
  if (format == "ipv6") return ipv6();
  if (format == "hostname") return hostname();
  if (format == "email") return email();
  if (format == "uri") return uri();
  return std::nullopt;
}

std::vector<std::string_view> known_formats() { return {kFormats.begin(), kFormats.end()}; }

}  // namespace outrider
