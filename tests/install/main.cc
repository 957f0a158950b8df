#include <outrider/error.h>

#include <cstring>

int main() {
  const outrider::Error error("open", "a file", "one that is there", "none");
  return std::strstr(error.what(), "[open] a file: expected one that is there") ? 0 : 1;
}
