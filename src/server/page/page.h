// SPDX-License-Identifier: Apache-2.0
// The page at `/`: its files, which the build embeds in the program (cmake/embed_page.cmake).
#ifndef OUTRIDER_SERVER_PAGE_PAGE_H_
#define OUTRIDER_SERVER_PAGE_PAGE_H_

#include <span>
#include <string_view>

#include "server/http/http_server.h"

namespace outrider::server {

struct PageFile {
  std::string_view path;  // of the request
  std::string_view content_type;
  std::string_view etag;  // with quotation marks; differs for different texts
  std::string_view text;
};
// Defined by the build.
std::span<const PageFile> page_files();

bool is_page(std::string_view path);
// The file, or 304 if the browser has it (If-None-Match). The path must be one of the page's.
// Headers forbid content from elsewhere, and scripts that are not files of the page.
HttpResponse page_response(std::string_view path, std::string_view if_none_match);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_PAGE_PAGE_H_
