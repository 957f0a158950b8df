// SPDX-License-Identifier: Apache-2.0
#include "server/page/page.h"

#include <algorithm>

namespace outrider::server {
namespace {

const PageFile* find(std::string_view path) {
  const auto files = page_files();
  const auto at = std::find_if(files.begin(), files.end(),
                               [path](const PageFile& file) { return file.path == path; });
  return at == files.end() ? nullptr : &*at;
}

}  // namespace

bool is_page(std::string_view path) { return find(path) != nullptr; }

HttpResponse page_response(std::string_view path, std::string_view if_none_match) {
  const PageFile& file = *find(path);
  HttpResponse response;
  response.content_type = file.content_type;
  response.headers = {
      {"Content-Security-Policy", "default-src 'self'; base-uri 'none'; frame-ancestors 'none'"},
      {"X-Content-Type-Options", "nosniff"},
      {"Referrer-Policy", "no-referrer"},
      {"Cache-Control", "no-cache"},
      {"ETag", std::string(file.etag)}};
  // A list of complete tags.
  if (if_none_match.find(file.etag) != std::string_view::npos) {
    response.status = 304;
  } else {
    response.body = file.text;
  }
  return response;
}

}  // namespace outrider::server
