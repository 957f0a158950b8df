// SPDX-License-Identifier: Apache-2.0
#include "server/http/origin_form.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>

namespace outrider::server {

std::string origin_form(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t end = std::min(target.find_first_of("/?", scheme.size()), target.size());
    const std::string_view rest = target.substr(end);
    return std::string(rest.starts_with('/') ? "" : "/").append(rest);
  }
  return std::string(target);
}

}  // namespace outrider::server
