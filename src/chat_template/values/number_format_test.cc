// SPDX-License-Identifier: Apache-2.0
#include "chat_template/values/number_format.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace outrider::jinja {
namespace {

struct RealCase {
  double value;
  NumberForm form;
  std::string printed;  // by Python 3.11's format()
};

NumberForm with_precision(std::int64_t precision, bool alternate = false) {
  NumberForm form;
  form.precision = precision;
  form.alternate = alternate;
  return form;
}

NumberForm filled_by_zeros(std::int64_t width, char grouping) {
  NumberForm form;
  form.fill = "0";
  form.align = '=';
  form.width = width;
  form.grouping = grouping;
  return form;
}

TEST(NumberFormat, APrecisionWithoutATypeTakesAnExponentWhereNoDigitIsLeftBehindThePoint) {
  const RealCase cases[] = {
      {123.0, with_precision(3), "1.23e+02"},   {123.4, with_precision(3), "1.23e+02"},
      {120.0, with_precision(3), "1.2e+02"},    {99.96, with_precision(3), "1e+02"},
      {5.0, with_precision(0), "5e+00"},        {5.0, with_precision(1), "5e+00"},
      {5.0, with_precision(1, true), "5.e+00"}, {12.0, with_precision(2, true), "1.2e+01"},
      {0.0, with_precision(1), "0e+00"},        {0.0, with_precision(3), "0.0"},
      {1.0, with_precision(3), "1.0"},          {5.0, with_precision(5), "5.0"},
      {5.0, with_precision(5, true), "5.0000"}, {1e-5, with_precision(3), "1e-05"},
      {1e-4, with_precision(3), "0.0001"},      {1e16, with_precision(3), "1e+16"},
      {123.456, with_precision(4), "123.5"},
  };
  for (const auto& [value, form, printed] : cases) {
    EXPECT_EQ(format_real(value, form), printed) << value << " ." << form.precision;
  }
}

TEST(NumberFormat, ZerosThatFillAWidthGetSeparators) {
  EXPECT_EQ(format_integer(1234, filled_by_zeros(8, ',')), "0,001,234");
  EXPECT_EQ(format_integer(1234, filled_by_zeros(9, ',')), "0,001,234");
  EXPECT_EQ(format_integer(1234, filled_by_zeros(10, ',')), "00,001,234");
  EXPECT_EQ(format_integer(-1234, filled_by_zeros(9, ',')), "-0,001,234");
  EXPECT_EQ(format_integer(0, filled_by_zeros(3, ',')), "000");
  EXPECT_EQ(format_integer(0, filled_by_zeros(4, ',')), "0,000");
  EXPECT_EQ(format_integer(0, filled_by_zeros(5, ',')), "0,000");
  NumberForm hexadecimal = filled_by_zeros(12, '_');
  hexadecimal.type = 'x';
  EXPECT_EQ(format_integer(1234, hexadecimal), "00_0000_04d2");
  hexadecimal.alternate = true;
  EXPECT_EQ(format_integer(1234, hexadecimal), "0x0_0000_04d2");

  EXPECT_EQ(format_real(1234.5, filled_by_zeros(12, ',')), "00,001,234.5");
  NumberForm two_places = filled_by_zeros(12, ',');
  two_places.type = 'f';
  two_places.precision = 2;
  EXPECT_EQ(format_real(1234.5, two_places), "0,001,234.50");
  EXPECT_EQ(format_real(std::numeric_limits<double>::infinity(), filled_by_zeros(12, ',')),
            "000000000inf");
}

TEST(NumberFormat, OtherFillsGetNoSeparators) {
  NumberForm form = filled_by_zeros(10, ',');
  form.fill = "*";
  EXPECT_EQ(format_integer(1234, form), "*****1,234");
}

}  // namespace
}  // namespace outrider::jinja
