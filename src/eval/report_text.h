// SPDX-License-Identifier: Apache-2.0
// Words and fields that reports share.
#ifndef OUTRIDER_EVAL_REPORT_TEXT_H_
#define OUTRIDER_EVAL_REPORT_TEXT_H_

#include <string>
#include <string_view>

#include "outrider/sampling.h"

namespace outrider::eval {

// "T=0.5 top-p=0.9": temperature and truncation.
std::string name_of(const SamplingParams& sampling);

// Whether temperature and truncation are equal.
bool same(const SamplingParams& a, const SamplingParams& b);

// A field of CSV, quoted if it needs to be, as in RFC 4180.
std::string csv_field(std::string_view text);

// Text for a file name: letters, digits, '.', '=' and '-' stay, all else becomes '-'.
std::string file_part(std::string_view text);

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_REPORT_TEXT_H_
