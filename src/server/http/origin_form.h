// SPDX-License-Identifier: Apache-2.0
// The targets of HTTP requests.
#ifndef OUTRIDER_SERVER_HTTP_ORIGIN_FORM_H_
#define OUTRIDER_SERVER_HTTP_ORIGIN_FORM_H_

#include <string>
#include <string_view>

namespace outrider::server {

// The path and query of a target. The target may also contain scheme and host, as sent to proxies
// (RFC 9112, 3.2.2).
std::string origin_form(std::string_view target);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_HTTP_ORIGIN_FORM_H_
