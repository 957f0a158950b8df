// SPDX-License-Identifier: Apache-2.0
#include "engine/batch/saved_text.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "base/bytes_of.h"
#include "base/checksum.h"
#include "base/files/atomic_file.h"
#include "model/cache/cache_group.h"
#include "model/prefill.h"
#include "outrider/error.h"

namespace outrider {
namespace {

constexpr std::array<char, 8> kMagic = {'O', 'U', 'T', 'R', 'T', 'E', 'X', 'T'};
constexpr std::uint32_t kVersion = 1;

struct Head {
  std::array<char, 8> magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t n_tokens = 0;
};

// Reads pieces in order and computes their checksum.
class PieceReader {
 public:
  explicit PieceReader(const std::filesystem::path& path) : path_(path.string()) {
    if (!std::filesystem::is_regular_file(path)) fail("a file", "none");
    file_.open(path, std::ios::binary);
    if (!file_) fail("a file that can be read", "one that cannot");
  }

  void read(std::span<std::byte> piece) {
    read_unsummed(piece);
    sum_ = checksum(piece, sum_);
  }

  void check_sum() {
    std::uint64_t expected = 0;
    const std::uint64_t sum = sum_;
    read_unsummed(bytes_of(expected));
    if (expected != sum) {
      fail(fmt::format("checksum {:016x}", expected), fmt::format("{:016x}: it is damaged", sum));
    }
  }

  bool at_end() { return file_.peek() == std::ifstream::traits_type::eof(); }
  std::int64_t n_read() const { return n_read_; }

  [[noreturn]] void fail(const std::string& expected, const std::string& got) const {
    throw Error("load text", path_, expected, got);
  }

 private:
  void read_unsummed(std::span<std::byte> piece) {
    file_.read(reinterpret_cast<char*>(piece.data()), static_cast<std::streamsize>(piece.size()));
    n_read_ += file_.gcount();
    if (file_.gcount() == static_cast<std::streamsize>(piece.size())) return;
    fail(fmt::format("at least {} bytes",
                     n_read_ - file_.gcount() + static_cast<std::int64_t>(piece.size())),
         fmt::format("{}: a saved text of this model is longer", n_read_));
  }

  std::string path_;
  std::ifstream file_;
  std::uint64_t sum_ = checksum({});
  std::int64_t n_read_ = 0;
};

std::uint64_t sum_of(const LanguageModel& model, const Sequence& sequence) {
  std::uint64_t sum = checksum({});
  model.save(sequence, [&sum](std::span<const std::byte> piece) { sum = checksum(piece, sum); });
  return sum;
}

// Runs a copy, so that the sequence stays as read.
bool runs_alike(LanguageModel& model, const Sequence& sequence, std::span<const TokenId> tokens) {
  const std::unique_ptr<Sequence> copy = sequence.fork();
  const auto n_before = static_cast<int>(tokens.size()) - 1;
  // Rewinds by a token, or to a state of recurrent layers, at most one page of tokens earlier.
  const int n_left = copy->rewind(n_before);
  if (n_left + kPageTokens <= n_before) return false;
  ForwardOutput output;
  prefill(model, *copy, tokens.subspan(static_cast<std::size_t>(n_left)), output);
  return sum_of(model, *copy) == sum_of(model, sequence);
}

}  // namespace

std::int64_t save_text(const LanguageModel& model, const Sequence& sequence,
                       std::span<const TokenId> tokens, const std::filesystem::path& path) {
  const auto n_kept = static_cast<std::size_t>(sequence.n_kept());
  if (n_kept == 0 || n_kept > tokens.size()) {
    throw Error("save text", "tokens", fmt::format("1 to {} that have been run", tokens.size()),
                fmt::format("{}", n_kept));
  }
  AtomicFile file(path);
  std::uint64_t sum = checksum({});
  std::int64_t n_bytes = 0;
  const auto write = [&](std::span<const std::byte> piece) {
    file.write(piece);
    sum = checksum(piece, sum);
    n_bytes += static_cast<std::int64_t>(piece.size());
  };
  const auto write_sum = [&] {
    file.write(bytes_of(sum));
    n_bytes += static_cast<std::int64_t>(sizeof(sum));
  };
  Head head;
  head.n_tokens = static_cast<std::uint32_t>(n_kept);
  write(bytes_of(head));
  write(std::as_bytes(tokens.first(n_kept)));
  write_sum();
  model.save(sequence, write);
  write_sum();
  file.commit();
  return n_bytes;
}

LoadedText load_text(LanguageModel& model, const std::filesystem::path& path,
                     const std::function<void(int n_tokens)>& make_room) {
  PieceReader reader(path);
  Head head;
  reader.read(bytes_of(head));
  if (head.magic != kMagic) reader.fail("a saved text", "another file");
  if (head.version != kVersion) {
    reader.fail(fmt::format("version {}", kVersion), fmt::format("{}", head.version));
  }
  const auto context = static_cast<std::uint32_t>(model.config().context_length);
  if (head.n_tokens == 0 || head.n_tokens > context) {
    reader.fail(fmt::format("1 to {} tokens", context), fmt::format("{}", head.n_tokens));
  }
  LoadedText text;
  text.tokens.resize(head.n_tokens);
  reader.read(std::as_writable_bytes(std::span(text.tokens)));
  reader.check_sum();
  const auto n_tokens = static_cast<int>(head.n_tokens);
  if (make_room) make_room(n_tokens + kPageTokens);  // runs_alike() writes to an additional page
  text.sequence =
      model.restore(n_tokens, [&reader](std::span<std::byte> piece) { reader.read(piece); });
  reader.check_sum();
  if (!reader.at_end()) reader.fail(fmt::format("{} bytes", reader.n_read()), "more");
  if (!runs_alike(model, *text.sequence, text.tokens)) {
    reader.fail("keys and values of this model, its kernels and its cache type", "others");
  }
  text.n_bytes = reader.n_read();
  return text;
}

}  // namespace outrider
