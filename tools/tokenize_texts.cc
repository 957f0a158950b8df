// SPDX-License-Identifier: Apache-2.0
// Tokenizes for tools/compare_tokenizers.py and tools/compare_tokenizer_speed.py. Each input line
// is JSON, each output line is the answer to it, an object. No special tokens are added.
//
//   tokenize_texts PATH        (whatever Tokenizer::load takes)
//
//   "a text"                    its "ids", and what they decode to as "text"
//   [1, 2, 3]                   ids that are decoded alone
//   {"file": F, "repeat": N}    the text of a file N times: "seconds" of the processor
//   {"file": F, "ids_to": G}    its ids into another file, int32 as the machine has them
//
// An "error" says what went wrong.
#include <ctime>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "outrider/tokenizer.h"

namespace {

using Json = nlohmann::json;
using Ids = std::vector<outrider::TokenId>;

Json about_file(const outrider::Tokenizer& tokenizer, const Json& asked) {
  std::ifstream file(asked["file"].get<std::string>(), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  Ids ids;
  if (asked.contains("ids_to")) {
    ids = tokenizer.encode(text, false);
    std::ofstream out(asked["ids_to"].get<std::string>(), std::ios::binary);
    out.write(reinterpret_cast<const char*>(ids.data()),
              static_cast<std::streamsize>(ids.size() * sizeof(Ids::value_type)));
    return {{"tokens", ids.size()}};
  }
  const std::clock_t begin = std::clock();
  for (int i = 0; i < asked["repeat"].get<int>(); ++i) ids = tokenizer.encode(text, false);
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return {{"seconds", seconds}, {"tokens", ids.size()}};
}

Json answer(const outrider::Tokenizer& tokenizer, const Json& asked) {
  if (asked.is_object()) return about_file(tokenizer, asked);
  const Ids ids =
      asked.is_array() ? asked.get<Ids>() : tokenizer.encode(asked.get<std::string>(), false);
  return {{"ids", ids}, {"text", tokenizer.decode(ids)}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: tokenize_texts PATH\n";
    return 2;
  }
  try {
    const auto tokenizer = outrider::Tokenizer::load(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      Json said;
      try {
        said = answer(*tokenizer, Json::parse(line));
      } catch (const std::exception& error) {
        said["error"] = error.what();
      }
      std::cout << said.dump() << std::endl;
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
