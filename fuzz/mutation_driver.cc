// SPDX-License-Identifier: Apache-2.0
// A fuzzing loop without libFuzzer, so that GCC alone can run the fuzz targets as tests.
//
//   TARGET CORPUS_FOLDER N_MUTANTS         every seed file, then that many mutants of them
//   TARGET CORPUS_FOLDER --mutant I FILE   writes mutant I to FILE and runs it alone
//
// Mutant I depends on the corpus and I only: it is the same on every machine, so failures can be
// replayed. A failure is a crash, a sanitizer report, an exception that leaves the target, or one
// allocation out of proportion to the input. The driver then reports which input failed.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
// From the sanitizers' runtime; null without them.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace {

using Input = std::vector<std::uint8_t>;

// The mutations below keep inputs under 64 KiB, and no reader needs more than a few dozen bytes per
// input byte. A larger request comes from an unchecked number.
constexpr std::size_t kLongestInput = 64 * 1024;
constexpr std::size_t kLargestAllocation = 64 * kLongestInput;
bool allocations_are_watched = false;

// The name of the current input, readable from a signal handler.
char now_running[256] = "";

void say_what_was_running() {
  constexpr char kIntroduction[] = "\nmutation driver: failed on ";
  const auto write_all = [](const char* text) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
  };
  write_all(kIntroduction);
  write_all(now_running);
  write_all("\n");
}

void on_signal(int number) {
  say_what_was_running();
  std::signal(number, SIG_DFL);
  std::raise(number);
}

void run(const Input& input, const std::string& name) {
  const std::size_t n = std::min(name.size(), sizeof(now_running) - 1);
  std::memcpy(now_running, name.data(), n);
  now_running[n] = '\0';
  // A copy of the exact size, so that a sanitizer detects reads past its end.
  const Input copy(input);
  allocations_are_watched = true;
  try {
    LLVMFuzzerTestOneInput(copy.data(), copy.size());
  } catch (const std::exception& error) {
    allocations_are_watched = false;
    fmt::print(stderr, "an exception left the target: {}\n", error.what());
    std::abort();
  }
  allocations_are_watched = false;
}

struct Seed {
  std::string name;
  Input bytes;
};

// Sorted by name: file systems promise no order.
std::vector<Seed> read_corpus(const std::filesystem::path& folder) {
  std::vector<Seed> seeds;
  if (!std::filesystem::is_directory(folder)) return seeds;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    seeds.push_back({entry.path().filename().string(), Input(std::istreambuf_iterator<char>(file),
                                                             std::istreambuf_iterator<char>())});
  }
  std::sort(seeds.begin(), seeds.end(), [](auto& a, auto& b) { return a.name < b.name; });
  return seeds;
}

class Mutator {
 public:
  Mutator(const std::vector<Seed>& seeds, std::uint64_t number) : seeds_(seeds), random_(number) {}

  Input mutant() {
    Input input = any_seed();
    const std::size_t n_changes = 1 + below(6);
    for (std::size_t i = 0; i < n_changes; ++i) change(input);
    if (input.size() > kLongestInput) input.resize(kLongestInput);
    return input;
  }

 private:
  // Uniform enough below n. std::uniform_int_distribution differs between standard libraries.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  const Input& any_seed() { return seeds_[below(seeds_.size())].bytes; }
  static auto at(Input& input, std::size_t i) {
    return input.begin() + static_cast<std::ptrdiff_t>(i);
  }

  void change(Input& input) {
    switch (below(8)) {
      case 0:
        if (!input.empty()) input[below(input.size())] ^= static_cast<std::uint8_t>(1 << below(8));
        return;
      case 1:
        if (!input.empty()) input[below(input.size())] = static_cast<std::uint8_t>(below(256));
        return;
      case 2:
        input.resize(below(input.size() + 1));
        return;
      case 3: {
        const auto byte = static_cast<std::uint8_t>(below(256));
        input.insert(at(input, below(input.size() + 1)), 1 + below(16), byte);
        return;
      }
      case 4:
        return erase(input);
      case 5:
        return splice(input);
      case 6:
        return write_integer(input);
      default:
        return write_digits(input);
    }
  }

  void erase(Input& input) {
    const std::size_t begin = below(input.size() + 1);
    const std::size_t n = std::min(input.size() - begin, 1 + below(16));
    input.erase(at(input, begin), at(input, begin + n));
  }

  // Overwrites part of the input with, or inserts, a piece of a seed.
  void splice(Input& input) {
    const Input& other = any_seed();
    const std::size_t from = below(other.size() + 1);
    const std::size_t n = std::min(other.size() - from, 1 + below(64));
    const Input piece(other.begin() + static_cast<std::ptrdiff_t>(from),
                      other.begin() + static_cast<std::ptrdiff_t>(from + n));
    const std::size_t to = below(input.size() + 1);
    if (below(2) == 0) {
      const std::size_t n_over = std::min(n, input.size() - to);
      std::copy_n(piece.begin(), n_over, at(input, to));
    } else {
      input.insert(at(input, to), piece.begin(), piece.end());
    }
  }

  // Numbers at which sizes and sums overflow, little-endian, in 1, 2, 4 or 8 bytes.
  void write_integer(Input& input) {
    constexpr std::array<std::uint64_t, 20> kNumbers = {
        0,          1,          2,          3,          7,           31,       32,
        33,         127,        255,        256,        0x7fff,      0xffff,   0x7fffffff,
        0x80000000, 0xffffffff, 1ULL << 32, 1ULL << 62, ~0ULL >> 1U, ~0ULL - 7};
    const std::size_t n_bytes = std::size_t{1} << below(4);
    if (input.size() < n_bytes) return;
    std::uint64_t number = kNumbers[below(kNumbers.size())];
    if (below(4) == 0) number = input.size() + below(65) - 32;  // near the size of the file
    const std::size_t to = below(input.size() - n_bytes + 1);
    for (std::size_t i = 0; i < n_bytes; ++i) {
      input[to + i] = static_cast<std::uint8_t>(number >> (8 * i));
    }
  }

  // The same for text formats: a run of digits, or a character with a meaning.
  void write_digits(Input& input) {
    static const std::array<std::string, 14> kTexts = {"0",
                                                       "-1",
                                                       "4294967296",
                                                       "9223372036854775807",
                                                       "9223372036854775808",
                                                       "18446744073709551616",
                                                       "1e999",
                                                       "1.5",
                                                       "{",
                                                       "[",
                                                       "\"",
                                                       "\\u0000",
                                                       ",",
                                                       "}"};
    // Half of them small: only small ones can match the rest of the file.
    const std::string text =
        below(2) == 0 ? std::to_string(below(65)) : kTexts[below(kTexts.size())];
    std::size_t begin = below(input.size() + 1);
    const auto is_digit = [&](std::size_t i) { return input[i] >= '0' && input[i] <= '9'; };
    for (std::size_t i = begin; i < input.size(); ++i) {  // the next number, if there is one
      if (is_digit(i)) {
        begin = i;
        break;
      }
    }
    std::size_t end = begin;
    while (end < input.size() && is_digit(end)) ++end;
    input.erase(at(input, begin), at(input, end));
    input.insert(at(input, begin), text.begin(), text.end());
  }

  const std::vector<Seed>& seeds_;
  std::mt19937_64 random_;
};

}  // namespace

// Global, so that allocations of standard containers in the target are counted. The array forms
// call these. The non-throwing forms are replaced too, because their memory is freed by the same
// operator delete (std::stable_sort's buffer is).
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  if (allocations_are_watched && size > kLargestAllocation) {
    allocations_are_watched = false;
    fmt::print(stderr, "an allocation of {} bytes\n", size);
    std::abort();
  }
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }

int main(int argc, char** argv) {
  const bool replay = argc == 5 && std::string(argv[2]) == "--mutant";
  if (argc != 3 && !replay) {
    fmt::print(stderr, "usage: {} CORPUS_FOLDER N_MUTANTS | CORPUS_FOLDER --mutant I FILE\n",
               argv[0]);
    return 2;
  }
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(say_what_was_running);
    std::signal(SIGABRT, on_signal);
  } else {
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
      std::signal(number, on_signal);
    }
  }
  const std::vector<Seed> seeds = read_corpus(argv[1]);
  if (seeds.empty()) {
    fmt::print(stderr, "no seeds in {}\n", argv[1]);
    return 1;
  }
  if (replay) {
    const Input input = Mutator(seeds, std::stoull(argv[3])).mutant();
    std::ofstream(argv[4], std::ios::binary)
        .write(reinterpret_cast<const char*>(input.data()),
               static_cast<std::streamsize>(input.size()));
    run(input, fmt::format("mutant {}", argv[3]));
    return 0;
  }
  for (const Seed& seed : seeds) run(seed.bytes, seed.name);
  const std::uint64_t n_mutants = std::stoull(argv[2]);
  for (std::uint64_t i = 0; i < n_mutants; ++i) {
    run(Mutator(seeds, i).mutant(), fmt::format("mutant {}", i));
  }
  fmt::print("{} seeds and {} mutants\n", seeds.size(), n_mutants);
  return 0;
}
