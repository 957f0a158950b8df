// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/time_text.h"

#include <fmt/format.h>

#include <array>

#include "chat_template/values/characters.h"

namespace outrider::jinja {
namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                   "Thursday", "Friday", "Saturday"};
constexpr std::array<std::string_view, 12> kMonths = {
    "January", "February", "March",     "April",   "May",      "June",
    "July",    "August",   "September", "October", "November", "December"};

// A calendar gives no negative years and no fields out of range.
std::size_t place(int value, std::size_t n) {
  return static_cast<std::size_t>(value < 0 ? 0 : value) % n;
}

bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

struct IsoWeek {
  int year;
  int week;
};

// Weeks begin on Mondays and belong to the year of their Thursday.
IsoWeek iso_week(const std::tm& time) {
  const int year = time.tm_year + 1900;
  const int weekday = (time.tm_wday + 6) % 7;  // Monday: 0
  const int week = (time.tm_yday - weekday + 10) / 7;
  // A year has 53 weeks if it begins on a Thursday, or on a Wednesday and is a leap year.
  const auto n_weeks = [](int of, int first_weekday) {
    return first_weekday == 3 || (first_weekday == 2 && is_leap(of)) ? 53 : 52;
  };
  const int first_weekday = ((weekday - time.tm_yday) % 7 + 7) % 7;
  if (week < 1) {
    const int before = year - 1;
    const int shift = is_leap(before) ? 366 : 365;
    return {before, n_weeks(before, ((first_weekday - shift) % 7 + 7) % 7)};
  }
  if (week > n_weeks(year, first_weekday)) return {year + 1, 1};
  return {year, week};
}

std::string number(int value, int width, char fill, char flag) {
  if (flag == '-') return fmt::format("{}", value);
  if (flag == '_') fill = ' ';
  if (flag == '0') fill = '0';
  return fill == '0' ? fmt::format("{:0{}}", value, width) : fmt::format("{:>{}}", value, width);
}

int hour12(const std::tm& time) { return time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12; }

std::string directive(const std::tm& time, char letter, char flag, Heap& heap) {
  const auto two = [flag](int value) { return number(value, 2, '0', flag); };
  const int year = time.tm_year + 1900;
  switch (letter) {
    case 'a':
      return std::string(kDays[place(time.tm_wday, 7)].substr(0, 3));
    case 'A':
      return std::string(kDays[place(time.tm_wday, 7)]);
    case 'b':
    case 'h':
      return std::string(kMonths[place(time.tm_mon, 12)].substr(0, 3));
    case 'B':
      return std::string(kMonths[place(time.tm_mon, 12)]);
    case 'c':
      return time_text(time, "%a %b %e %H:%M:%S %Y", heap);
    case 'C':
      return two(year / 100);
    case 'd':
      return two(time.tm_mday);
    case 'D':
    case 'x':
      return time_text(time, "%m/%d/%y", heap);
    case 'e':
      return number(time.tm_mday, 2, ' ', flag);
    case 'f':  // fractions of a second, which the clock lacks
      return "000000";
    case 'F':
      return time_text(time, "%Y-%m-%d", heap);
    case 'g':
      return two(iso_week(time).year % 100);
    case 'G':
      return fmt::format("{}", iso_week(time).year);
    case 'H':
      return two(time.tm_hour);
    case 'I':
      return two(hour12(time));
    case 'j':
      return number(time.tm_yday + 1, 3, '0', flag);
    case 'k':
      return number(time.tm_hour, 2, ' ', flag);
    case 'l':
      return number(hour12(time), 2, ' ', flag);
    case 'm':
      return two(time.tm_mon + 1);
    case 'M':
      return two(time.tm_min);
    case 'n':
      return "\n";
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'P':
      return time.tm_hour < 12 ? "am" : "pm";
    case 'r':
      return time_text(time, "%I:%M:%S %p", heap);
    case 'R':
      return time_text(time, "%H:%M", heap);
    case 'S':
      return two(time.tm_sec);
    case 't':
      return "\t";
    case 'T':
    case 'X':
      return time_text(time, "%H:%M:%S", heap);
    case 'u':
      return fmt::format("{}", time.tm_wday == 0 ? 7 : time.tm_wday);
    case 'U':
      return two((time.tm_yday + 7 - time.tm_wday) / 7);
    case 'V':
      return two(iso_week(time).week);
    case 'w':
      return fmt::format("{}", time.tm_wday);
    case 'W':
      return two((time.tm_yday + 7 - (time.tm_wday + 6) % 7) / 7);
    case 'y':
      return two(year % 100);
    case 'Y':
      return fmt::format("{}", year);
    case 'z':  // time zones, which the clock lacks
    case 'Z':
      return "";
    case '%':
      return "%";
    default:
      fail(fmt::format("strftime_now: expected a known directive, got '%{}'", letter));
  }
}

}  // namespace

std::string time_text(const std::tm& time, std::string_view format, Heap& heap) {
  std::string out;
  for (std::size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%' || at + 1 == format.size()) {
      out += format[at];
      continue;
    }
    char flag = '\0';
    ++at;
    constexpr std::string_view kFlags = "-_0^";
    if (kFlags.find(format[at]) != std::string_view::npos && at + 1 < format.size()) {
      flag = format[at++];
    }
    const std::string part = directive(time, format[at], flag, heap);
    out += flag == '^' ? to_upper(part) : part;
    heap.count_steps(1);
    heap.check_text_size(out.size());
  }
  return out;
}

}  // namespace outrider::jinja
