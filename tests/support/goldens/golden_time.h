// SPDX-License-Identifier: Apache-2.0
// The current time given to the templates of goldens.
#ifndef OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_TIME_H_
#define OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_TIME_H_

#include <ctime>

namespace outrider::test {

// 26 July 2024, 14:05:09, a Friday: NOW of make_template_goldens.py.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 124;
  time.tm_mon = 6;
  time.tm_mday = 26;
  time.tm_hour = 14;
  time.tm_min = 5;
  time.tm_sec = 9;
  time.tm_wday = 5;
  time.tm_yday = 207;
  return time;
}

}  // namespace outrider::test

#endif  // OUTRIDER_TESTS_SUPPORT_GOLDENS_GOLDEN_TIME_H_
