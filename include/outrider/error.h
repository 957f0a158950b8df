// SPDX-License-Identifier: Apache-2.0
// The exception types of the library.
#ifndef OUTRIDER_ERROR_H_
#define OUTRIDER_ERROR_H_

#include <stdexcept>
#include <string>
#include <string_view>

namespace outrider {

// Invalid input: a file, a flag, a prompt. what() is one line: "[operation] object: expected X, got
// Y". Thrown where outside data enters, never from inside a kernel. The object that threw it is
// unchanged.
class Error : public std::runtime_error {
 public:
  Error(std::string_view operation, std::string_view object, std::string_view expected,
        std::string_view got);

  // For problems without "expected, got": "[operation] object: problem".
  Error(std::string_view operation, std::string_view object, std::string_view problem);
};

// An invalid request: an unknown spec name, a parameter out of range, two options that exclude each
// other. The command line exits with status 2 on it, and with 1 on any other Error.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Another process that holds a part of a model (outrider/ranks.h) was silent for too long, gave up
// or cannot be reached. The model cannot be used any more.
class LostRank : public Error {
 public:
  using Error::Error;
};

// A device for passes (outrider/devices.h) was lost: its driver gave up on it. A model on it cannot
// be used any more.
class LostDevice : public Error {
 public:
  using Error::Error;
};

// A device has too little memory for the request. Nothing has changed. A smaller request may
// succeed, and so may this one once others have ended.
class NoDeviceMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace outrider

#endif  // OUTRIDER_ERROR_H_
