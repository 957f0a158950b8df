// SPDX-License-Identifier: Apache-2.0
#include "engine/files/text_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "outrider/error.h"
#include "tests/support/temporary_directory.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;

class TextDocumentsTest : public ::testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    const fs::path path = directory_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  // Joins documents again; checks first and last, and that pieces hold whole characters.
  static std::vector<std::string> documents(const std::vector<fs::path>& texts,
                                            const std::string& separator, int* n_pieces = nullptr) {
    TextDocuments source(texts, separator);
    std::vector<std::string> all;
    bool inside = false;
    while (const auto piece = source.next()) {
      EXPECT_EQ(piece->first, !inside);
      EXPECT_FALSE(piece->text.empty());
      EXPECT_LE(piece->text.size(), TextDocuments::kPiece_bytes);
      EXPECT_NE(static_cast<unsigned char>(piece->text.front()) & 0xC0, 0x80);
      if (piece->first) all.emplace_back();
      all.back() += piece->text;
      inside = !piece->last;
      if (n_pieces != nullptr) ++*n_pieces;
    }
    EXPECT_FALSE(inside);
    EXPECT_EQ(source.n_bytes_read(), source.n_bytes());
    EXPECT_FALSE(source.next().has_value());
    return all;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(TextDocumentsTest, AreWhatSeparatorsLeave) {
  const fs::path file = write("a", "\n one <end>two<end> \n<end>\tthree\n");
  EXPECT_THAT(documents({file}, "<end>"), ElementsAre("one ", "two", "three\n"));
  EXPECT_THAT(documents({file}, ""), ElementsAre("one <end>two<end> \n<end>\tthree\n"));
  EXPECT_THAT(documents({file, file}, "\n one "),
              ElementsAre("<end>two<end> \n<end>\tthree\n", "<end>two<end> \n<end>\tthree\n"));
  EXPECT_THAT(documents({write("empty", ""), write("end", "x<end>")}, "<end>"), ElementsAre("x"));
}

TEST_F(TextDocumentsTest, PiecesAreAsShortAsAskedFor) {
  const std::string text = "\xf0\x9f\x98\x80\xf0\x9f\x98\x80 one two\nthree";
  const std::vector<fs::path> files = {write("a", text)};
  for (const std::size_t n_bytes : {4U, 5U, 8U, 12U, 100U}) {
    TextDocuments source(files, "", n_bytes);
    std::string whole;
    while (const auto piece = source.next()) {
      EXPECT_LE(piece->text.size(), n_bytes);
      EXPECT_NE(static_cast<unsigned char>(piece->text.front()) & 0xC0, 0x80);
      whole += piece->text;
    }
    EXPECT_EQ(whole, text) << n_bytes;
  }
}

TEST_F(TextDocumentsTest, FoldersGiveTheirFilesInOrder) {
  write("folder/b", "2");
  write("folder/a/z", "1");
  write("folder/c/a", "3");
  write("folder/.hidden/a", "no");
  write("folder/c/.a", "no");
  EXPECT_THAT(documents({directory_.path() / "folder"}, ""), ElementsAre("1", "2", "3"));
}

TEST_F(TextDocumentsTest, LongOnesComeInPieces) {
  constexpr std::size_t kPiece = TextDocuments::kPiece_bytes;
  std::string lines;
  while (lines.size() < 3 * kPiece) lines += "a line of text\n";
  std::string words;
  while (words.size() < 3 * kPiece) words += "word ";
  words.pop_back();
  std::string wide;  // three bytes per character, so no piece is filled exactly
  while (wide.size() < 3 * kPiece) wide += "\xE2\x96\x81";
  for (const std::string& text : {lines, words, wide, std::string(kPiece, 'x')}) {
    int n_pieces = 0;
    EXPECT_THAT(documents({write("text", text)}, "", &n_pieces), ElementsAre(text));
    EXPECT_EQ(n_pieces, text.size() == kPiece ? 1 : 4);
  }
  TextDocuments source(std::vector{write("lines", lines)}, "");
  EXPECT_EQ(source.next()->text.back(), '\n');
  TextDocuments of_words(std::vector{write("words", words)}, "");
  EXPECT_EQ(of_words.next()->text.back(), 'd');
  EXPECT_EQ(of_words.next()->text.front(), ' ');
}

TEST_F(TextDocumentsTest, WhatIsNoTextIsRefused) {
  EXPECT_THROW(documents({directory_.path() / "nowhere"}, ""), Error);
  fs::create_directories(directory_.path() / "none");
  EXPECT_THROW(documents({directory_.path() / "none"}, ""), Error);
  const fs::path good = write("good", "text");
  try {
    documents({good, write("bad", "a\nb\nc\x80")}, "");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("byte 0x80 in line 3"));
  }
}

}  // namespace
}  // namespace outrider
