#include "tokenizer/character_class.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/pattern.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

constexpr std::size_t kPage = 256;  // characters
constexpr char32_t kEnd = 0x110000;

using Page = std::array<std::uint16_t, kPage>;

class ClassTable {
 public:
  ClassTable() {
    std::vector<std::uint16_t> classes(kEnd);
    // Most code points are no character yet, or for private use: in no class.
    const Matches all(every_code_point());
    std::string assigned;
    all.for_each(R"([^\p{Cn}\p{Co}]+)", [&](std::string_view run) { assigned.append(run); });
    const Matches characters(std::move(assigned));
    constexpr std::pair<const char*, std::uint16_t> kClasses[] = {
        {R"(\p{L}+)", kLetter}, {R"([\p{Lu}\p{Lt}]+)", kCapital}, {R"(\p{Ll}+)", kSmall},
        {R"(\p{M}+)", kMark},   {R"(\p{N}+)", kNumber},           {R"(\d+)", kDigit},
        {R"(\s+)", kBlank},     {R"([\r\n]+)", kLineEnd},         {R"(\w+)", kInWord}};
    for (const auto& [pattern, bit] : kClasses) {
      characters.for_each(pattern, [&, bit = bit](std::string_view run) {
        for (std::size_t at = 0; at < run.size();) {
          const CodePoint character = code_point_at(run, at);
          classes[character.value] |= bit;
          at += static_cast<std::size_t>(character.n_bytes);
        }
      });
    }
    set_pages(classes);
  }
  std::uint16_t of(char32_t value) const { return pages_[page_of_[value / kPage]][value % kPage]; }

 private:
  class Matches {
   public:
    explicit Matches(std::string text) : text_(std::move(text)) {}
    template <typename Function>
    void for_each(const char* pattern, Function&& function) const {
      MatchScratch scratch;
      std::vector<TextRange> matches;
      Pattern::regex(pattern, "character class").find_all(text_, scratch, matches);
      for (const TextRange& match : matches) {
        function(std::string_view(text_).substr(match.begin, match.end - match.begin));
      }
    }

   private:
    std::string text_;
  };

  static std::string every_code_point() {
    std::string text;
    text.reserve(std::size_t{4} * kEnd);
    for (char32_t value = 0; value < kEnd; ++value) {
      if (value < 0xD800 || value > 0xDFFF) append_utf8(value, text);  // surrogates are no text
    }
    return text;
  }
  void set_pages(const std::vector<std::uint16_t>& classes) {
    std::map<Page, std::uint16_t> known;
    for (std::size_t first = 0; first < classes.size(); first += kPage) {
      Page page;
      for (std::size_t i = 0; i < kPage; ++i) page[i] = classes[first + i];
      const auto [at, is_new] = known.emplace(page, static_cast<std::uint16_t>(pages_.size()));
      if (is_new) pages_.push_back(page);
      page_of_[first / kPage] = at->second;
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
