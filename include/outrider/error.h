// The one exception type of the library.
#ifndef OUTRIDER_ERROR_H_
#define OUTRIDER_ERROR_H_

#include <stdexcept>
#include <string>
#include <string_view>

namespace outrider {

// Something given to the library was not what it must be: a file, a flag, a prompt.
// what() is one line: "[operation] object: expected X, got Y". Thrown where outside data enters,
// never from inside a kernel. After it the object it was thrown from is unchanged.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view object, std::string_view expected,
        std::string_view got);

  // For what fits no "expected, got": "[operation] object: problem".
  Error(std::string_view operation, std::string_view object, std::string_view problem);
};

// A request that cannot be meant: an unknown spec name, a parameter out of its range, two options
// that exclude each other. The command line exits with status 2 on it, 1 on any other Error.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Another process that held a part of a model (outrider/ranks.h) was silent for too long, gave up
// or cannot be reached. The model is of no use from then on.
class LostRank : public Error {
 public:
  using Error::Error;
};

}  // namespace outrider

#endif  // OUTRIDER_ERROR_H_
