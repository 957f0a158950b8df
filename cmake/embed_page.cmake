# SPDX-License-Identifier: Apache-2.0
# Writes the page's files into a C++ source that defines page_files() (src/server/page/page.h).
#   cmake -D SOURCE_DIR=src/server/page -D OUTPUT=page_files.cc -P cmake/embed_page.cmake
set(files
  "index.html|/|text/html"
  "page.css|/page.css|text/css"
  "page.js|/page.js|text/javascript"
  "api.js|/api.js|text/javascript"
  "settings.js|/settings.js|text/javascript"
  "round_view.js|/round_view.js|text/javascript"
  "page.svg|/page.svg|image/svg+xml")

set(texts "")
set(entries "")
set(number 0)
foreach(entry IN LISTS files)
  string(REPLACE "|" ";" parts "${entry}")
  list(GET parts 0 name)
  list(GET parts 1 path)
  list(GET parts 2 type)
  if(type MATCHES "^text/")
    string(APPEND type "; charset=utf-8")
  endif()
  file(READ "${SOURCE_DIR}/${name}" hex HEX)
  file(SHA256 "${SOURCE_DIR}/${name}" sum)
  string(SUBSTRING "${sum}" 0 16 tag)
  string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND texts "constexpr unsigned char kText${number}[] = {\n${bytes}0};\n")
  string(APPEND entries
    "      {\"${path}\", \"${type}\", \"\\\"${tag}\\\"\", text_of(kText${number}, sizeof(kText${number}))},\n")
  math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Made by cmake/embed_page.cmake.
#include \"server/page/page.h\"

namespace outrider::server {
namespace {

${texts}
// Less the zero byte behind it.
std::string_view text_of(const unsigned char* text, std::size_t size) {
  return {reinterpret_cast<const char*>(text), size - 1};
}

}  // namespace

std::span<const PageFile> page_files() {
  static const PageFile files[] = {
${entries}  };
  return files;
}

}  // namespace outrider::server
")
