// The page at `/`: its files, which the build writes into the program (cmake/embed_page.cmake).
#ifndef OUTRIDER_SERVER_PAGE_PAGE_H_
#define OUTRIDER_SERVER_PAGE_PAGE_H_

#include <span>
#include <string_view>

#include "server/http/http_server.h"

namespace outrider::server {

struct PageFile {
  std::string_view path;  // that it is asked for by
  std::string_view content_type;
  std::string_view etag;  // in quotation marks; another text has another one
  std::string_view text;
};
// Made by the build.
std::span<const PageFile> page_files();

bool is_page(std::string_view path);
// The file, or 304 where the browser has it (If-None-Match). The path is one of the page's. Nothing
// in the page may come from elsewhere, or run that is not one of its files.
HttpResponse page_response(std::string_view path, std::string_view if_none_match);

}  // namespace outrider::server

#endif  // OUTRIDER_SERVER_PAGE_PAGE_H_
