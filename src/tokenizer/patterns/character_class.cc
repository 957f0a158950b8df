// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/patterns/character_class.h"

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/patterns/pattern.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

constexpr std::size_t kPage = 256;  // characters
constexpr char32_t kPlane = 0x10000;
constexpr char32_t kEnd = 17 * kPlane;

using Page = std::array<std::uint16_t, kPage>;

class ClassTable {
 public:
  // Plane by plane, so that no text exceeds 256 KiB.
  ClassTable() {
    // Most code points are unassigned or private: in no class.
    const Class assigned(R"([^\p{Cn}\p{Co}]+)", 0);
    std::vector<Class> classes;
    classes.reserve(9);
    classes.emplace_back(R"(\p{L}+)", kLetter);
    classes.emplace_back(R"([\p{Lu}\p{Lt}]+)", kCapital);
    classes.emplace_back(R"(\p{Ll}+)", kSmall);
    classes.emplace_back(R"(\p{M}+)", kMark);
    classes.emplace_back(R"(\p{N}+)", kNumber);
    classes.emplace_back(R"(\d+)", kDigit);
    classes.emplace_back(R"(\s+)", kBlank);
    classes.emplace_back(R"([\r\n]+)", kLineEnd);
    classes.emplace_back(R"(\w+)", kInWord);
    std::map<Page, std::uint16_t> known;
    for (char32_t plane = 0; plane < kEnd; plane += kPlane) {
      std::string characters;
      assigned.for_each(code_points_of(plane),
                        [&](std::string_view run) { characters.append(run); });
      std::vector<std::uint16_t> bits(kPlane);
      for (const Class& one : classes) {
        one.for_each(characters, [&](std::string_view run) {
          for (std::size_t at = 0; at < run.size();) {
            const CodePoint character = code_point_at(run, at);
            bits[character.value - plane] |= one.bit();
            at += static_cast<std::size_t>(character.n_bytes);
          }
        });
      }
      add_pages(plane, bits, known);
    }
  }
  std::uint16_t of(char32_t value) const { return pages_[page_of_[value / kPage]][value % kPage]; }

 private:
  // Runs of characters of one class in a text.
  class Class {
   public:
    Class(const char* pattern, std::uint16_t bit)
        : pattern_(Pattern::regex(pattern, "character class")), bit_(bit) {}
    std::uint16_t bit() const { return bit_; }
    template <typename Function>
    void for_each(std::string_view text, Function&& function) const {
      MatchScratch scratch;
      std::vector<TextRange> matches;
      pattern_.find_all(text, scratch, matches);
      for (const TextRange& match : matches) {
        function(text.substr(match.begin, match.end - match.begin));
      }
    }

   private:
    Pattern pattern_;
    std::uint16_t bit_;
  };

  static std::string code_points_of(char32_t plane) {
    std::string text;
    text.reserve(std::size_t{4} * kPlane);
    for (char32_t value = plane; value < plane + kPlane; ++value) {
      // Surrogates cannot occur in text.
      if (value < 0xD800 || value > 0xDFFF) append_utf8(value, text);
    }
    return text;
  }
  void add_pages(char32_t plane, const std::vector<std::uint16_t>& bits,
                 std::map<Page, std::uint16_t>& known) {
    for (std::size_t first = 0; first < bits.size(); first += kPage) {
      Page page;
      for (std::size_t i = 0; i < kPage; ++i) page[i] = bits[first + i];
      const auto [at, is_new] = known.emplace(page, static_cast<std::uint16_t>(pages_.size()));
      if (is_new) pages_.push_back(page);
      page_of_[(plane + first) / kPage] = at->second;
    }
  }

  std::array<std::uint16_t, kEnd / kPage> page_of_{};
  std::vector<Page> pages_;
};

}  // namespace

ClassifiedCharacter classify_beyond_ascii(std::string_view text, std::size_t at) {
  static const ClassTable table;
  const CodePoint character = code_point_at(text, at);
  return {table.of(character.value), static_cast<std::uint16_t>(character.n_bytes)};
}

}  // namespace outrider
