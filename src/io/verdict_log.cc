// SPDX-License-Identifier: Apache-2.0
#include "io/verdict_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/checksum.h"
#include "base/files/atomic_file.h"
#include "outrider/error.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "records are copied as they lie");

constexpr std::string_view kMagic = "OUTRVLOG";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kHeaderBytes = kVerdictSegmentHeaderBytes;
constexpr std::size_t kRecordHeadBytes = 16;
// Readers hold a segment's new bytes in memory.
constexpr std::int64_t kMaxSegmentBytes = std::int64_t{1} << 30;
// Above any vocabulary; sizes computed from a header fit into 64 bits.
constexpr int kMaxVocabulary = 1 << 27;
constexpr const char* kExtension = ".verdicts";
constexpr const char* kOpen = "open verdict log";
constexpr const char* kRead = "read verdict log";
constexpr const char* kWrite = "write verdict log";

[[noreturn]] void fail(const char* operation, const fs::path& path, int error) {
  throw Error(operation, path.string(), std::generic_category().message(error));
}

fs::path segment_path(const fs::path& directory, std::int64_t number) {
  return directory / fmt::format("{:08}{}", number, kExtension);
}

// The numbers of the existing segments, ascending.
std::vector<std::int64_t> segment_numbers(const char* operation, const fs::path& directory) {
  std::vector<std::int64_t> numbers;
  std::error_code failed;
  fs::directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::directory_iterator(); entry.increment(failed)) {
    const std::string stem = entry->path().stem().string();
    // Any eighteen digits fit into 64 bits.
    if (entry->path().extension() != kExtension || stem.empty() || stem.size() > 18 ||
        stem.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    numbers.push_back(std::stoll(stem));
  }
  if (failed) fail(operation, directory, failed.value());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// Writes plain numbers in order.
class Packer {
 public:
  explicit Packer(std::vector<std::byte>& out) : out_(&out) {}
  template <class T>
  void put(const T& value) {
    put(std::span<const T>(&value, 1));
  }
  template <class T>
  void put(std::span<const T> values) {
    const std::size_t before = out_->size();
    out_->resize(before + values.size_bytes());
    if (!values.empty()) std::memcpy(out_->data() + before, values.data(), values.size_bytes());
  }

 private:
  std::vector<std::byte>* out_;
};

class Unpacker {
 public:
  explicit Unpacker(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value;
    take(std::span<T>(&value, 1));
    return value;
  }
  // The caller has checked that enough bytes are left.
  template <class T>
  void take(std::span<T> values) {
    std::memcpy(values.data(), bytes_.data(), values.size_bytes());
    bytes_ = bytes_.subspan(values.size_bytes());
  }

 private:
  std::span<const std::byte> bytes_;
};

// Reads the file from this byte to its end; nullopt if it is gone. Does not map it: a writer that
// truncates a torn record would remove pages under the reader.
std::optional<std::vector<std::byte>> read_from(const fs::path& path, std::int64_t offset) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    if (errno == ENOENT) return std::nullopt;
    fail(kRead, path, errno);
  }
  constexpr std::size_t kStep = std::size_t{1} << 20;
  std::vector<std::byte> bytes;
  std::size_t n_read = 0;
  for (;;) {
    bytes.resize(n_read + kStep);
    const ssize_t n = ::pread(descriptor, bytes.data() + n_read, kStep,
                              static_cast<off_t>(offset) + static_cast<off_t>(n_read));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const int error = errno;
      ::close(descriptor);
      if (n < 0) fail(kRead, path, error);
      break;
    }
    n_read += static_cast<std::size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

std::vector<std::byte> header_bytes(const VerdictLogFormat& format) {
  std::vector<std::byte> bytes;
  Packer packer(bytes);
  packer.put(std::span<const char>(kMagic));
  packer.put(kVersion);
  packer.put(std::int32_t{format.n_vocabulary});
  packer.put(std::int32_t{format.n_kept});
  packer.put(std::int32_t{format.vocabulary.size});
  packer.put(format.vocabulary.fingerprint);
  return bytes;
}

// bytes: a file from its beginning. Throws Error if it is not a segment.
VerdictLogFormat read_header(std::span<const std::byte> bytes, const fs::path& path) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    throw Error(kRead, path.string(), "a segment of a verdict log", "something else");
  }
  Unpacker unpacker(bytes.subspan(kMagic.size()));
  const auto version = unpacker.take<std::uint32_t>();
  if (version != kVersion) {
    throw Error(kRead, path.string(), fmt::format("version {}", kVersion),
                fmt::format("{}", version));
  }
  VerdictLogFormat format;
  format.n_vocabulary = unpacker.take<std::int32_t>();
  format.n_kept = unpacker.take<std::int32_t>();
  format.vocabulary.size = unpacker.take<std::int32_t>();
  format.vocabulary.fingerprint = unpacker.take<std::uint64_t>();
  if (format.n_kept < 1 || format.n_kept > format.n_vocabulary ||
      format.n_vocabulary > kMaxVocabulary) {
    throw Error(
        kRead, path.string(),
        fmt::format("between one token a position and a vocabulary of at most {}", kMaxVocabulary),
        fmt::format("{} of {}", format.n_kept, format.n_vocabulary));
  }
  return format;
}

// The payload of the record that begins here; nullopt if it is incomplete.
std::optional<std::span<const std::byte>> whole_payload(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeadBytes) return std::nullopt;
  Unpacker unpacker(bytes);
  const auto n_bytes = unpacker.take<std::uint64_t>();
  const auto sum = unpacker.take<std::uint64_t>();
  bytes = bytes.subspan(kRecordHeadBytes);
  if (n_bytes > bytes.size()) return std::nullopt;
  const auto payload = bytes.first(n_bytes);
  if (checksum(payload) != sum) return std::nullopt;
  return payload;
}

// The size of the record that begins here, by its own field.
std::optional<std::size_t> said_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < kRecordHeadBytes) return std::nullopt;
  const auto n_bytes = Unpacker(bytes).take<std::uint64_t>();
  if (n_bytes > static_cast<std::uint64_t>(kMaxSegmentBytes)) return std::nullopt;
  return kRecordHeadBytes + static_cast<std::size_t>(n_bytes);
}

// The bytes before the next complete record, if damaged records still give their length; nullopt if
// no complete one is found that way.
std::optional<std::size_t> damaged_bytes(std::span<const std::byte> bytes) {
  std::size_t at = 0;
  while (const auto said = said_bytes(bytes.subspan(at))) {
    at += *said;
    if (at >= bytes.size()) break;
    if (whole_payload(bytes.subspan(at))) return at;
  }
  return std::nullopt;
}

// Whether these bytes, without a complete record, are the last record of a writer that was killed.
// Otherwise complete records may be among them.
bool is_torn(std::span<const std::byte> bytes, const VerdictLogFormat& format) {
  if (bytes.size() < kRecordHeadBytes + 2 * sizeof(std::uint32_t)) return true;
  const auto said = said_bytes(bytes);
  Unpacker counts(bytes.subspan(kRecordHeadBytes));
  const std::int64_t n_prompt = counts.take<std::uint32_t>();
  const std::int64_t n_generated = counts.take<std::uint32_t>();
  return said && *said > bytes.size() &&
         static_cast<std::int64_t>(*said) ==
             record_bytes(format, n_prompt + n_generated, n_generated);
}

// A payload with a valid checksum was written by a program, but perhaps by a different one.
LoggedText parse_payload(std::span<const std::byte> payload, const VerdictLogFormat& format,
                         const fs::path& path) {
  const auto refuse = [&](std::string_view expected) {
    throw Error(kRead, path.string(), expected, "a record without");
  };
  constexpr std::size_t kCounts = 8;
  if (payload.size() < kCounts) refuse("records with a prompt and generated tokens");
  Unpacker unpacker(payload);
  const auto n_prompt = std::size_t{unpacker.take<std::uint32_t>()};
  const auto n_generated = std::size_t{unpacker.take<std::uint32_t>()};
  const auto n_kept = static_cast<std::size_t>(format.n_kept);
  // n_generated below 2^32 and n_kept up to 2^27: the products do not overflow 64 bits.
  if (n_prompt == 0 || n_generated == 0 || n_prompt + n_generated > payload.size() ||
      payload.size() !=
          kCounts + 4 * (n_prompt + n_generated) + 4 * n_generated * (1 + 2 * n_kept)) {
    refuse("records whose counts fit their length");
  }
  LoggedText text;
  text.n_prompt = static_cast<int>(n_prompt);
  text.tokens.resize(n_prompt + n_generated);
  text.kept_ids.resize(n_generated * n_kept);
  text.kept_logprobs.resize(n_generated * n_kept);
  text.rest_logprobs.resize(n_generated);
  unpacker.take(std::span(text.tokens));
  for (std::size_t row = 0; row < n_generated; ++row) {
    unpacker.take(std::span(text.rest_logprobs).subspan(row, 1));
    unpacker.take(std::span(text.kept_ids).subspan(row * n_kept, n_kept));
    unpacker.take(std::span(text.kept_logprobs).subspan(row * n_kept, n_kept));
  }
  const auto is_token = [&](TokenId id) { return id >= 0 && id < format.n_vocabulary; };
  // Rounding may make a certain token's logarithm slightly positive; NaN fails the comparison.
  const auto is_logprob = [](float value) { return value < 1e-3F; };
  if (!std::all_of(text.tokens.begin(), text.tokens.end(), is_token) ||
      !std::all_of(text.kept_ids.begin(), text.kept_ids.end(), is_token)) {
    refuse(fmt::format("token ids below {}", format.n_vocabulary));
  }
  if (!std::all_of(text.kept_logprobs.begin(), text.kept_logprobs.end(), is_logprob) ||
      !std::all_of(text.rest_logprobs.begin(), text.rest_logprobs.end(), is_logprob)) {
    refuse("logarithms of probabilities");
  }
  return text;
}

// Calls use(payload) for each complete record; returns the end of the last one.
template <typename Use>
std::size_t for_records(std::span<const std::byte> bytes, const Use& use) {
  std::size_t n_read = 0;
  for (;;) {
    const auto rest = bytes.subspan(n_read);
    if (const auto payload = whole_payload(rest)) {
      use(*payload);
      n_read += kRecordHeadBytes + payload->size();
    } else if (const auto damaged = damaged_bytes(rest)) {
      n_read += *damaged;
    } else {
      return n_read;
    }
  }
}

// Appends the texts of the complete records; returns the end of the last one.
std::int64_t read_records(std::span<const std::byte> bytes, const VerdictLogFormat& format,
                          const fs::path& path, std::vector<LoggedText>& texts) {
  return static_cast<std::int64_t>(for_records(
      bytes, [&](const auto& payload) { texts.push_back(parse_payload(payload, format, path)); }));
}

void require_same(const VerdictLogFormat& wanted, const VerdictLogFormat& there,
                  const fs::path& directory) {
  if (there.vocabulary != wanted.vocabulary || there.n_vocabulary != wanted.n_vocabulary) {
    throw Error(kOpen, directory.string(),
                fmt::format("a log of this target's vocabulary ({} rows)", wanted.n_vocabulary),
                fmt::format("one of another ({} rows)", there.n_vocabulary));
  }
  if (there.n_kept != wanted.n_kept) {
    throw Error(kOpen, directory.string(),
                fmt::format("{} tokens a position, as the log was begun", there.n_kept),
                fmt::format("{}", wanted.n_kept));
  }
}

void write_all(int descriptor, std::span<const std::byte> bytes, const fs::path& path) {
  while (!bytes.empty()) {
    const ssize_t n_written = ::write(descriptor, bytes.data(), bytes.size());
    if (n_written < 0) {
      if (errno == EINTR) continue;
      fail(kWrite, path, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n_written));
  }
}

}  // namespace

std::int64_t record_bytes(const VerdictLogFormat& format, std::int64_t n_tokens,
                          std::int64_t n_generated) {
  return static_cast<std::int64_t>(kRecordHeadBytes) + 8 + 4 * n_tokens +
         4 * n_generated * (1 + 2 * std::int64_t{format.n_kept});
}

VerdictLogWriter::VerdictLogWriter(fs::path directory, const VerdictLogFormat& format,
                                   std::int64_t max_bytes)
    : directory_(std::move(directory)), format_(format), max_bytes_(max_bytes) {
  std::error_code failed;
  if (directory_.has_parent_path()) fs::create_directories(directory_.parent_path(), failed);
  // Users' messages to a model are private: not readable for others on the machine.
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST) fail(kOpen, directory_, errno);
  lock_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ < 0) fail(kOpen, directory_, errno);
  try {
    if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK) fail(kOpen, directory_, errno);
      throw Error(kOpen, directory_.string(), "a log that no other program is writing",
                  "one in use");
    }
    for (const std::int64_t number : segment_numbers(kOpen, directory_)) {
      const fs::path path = segment_path(directory_, number);
      segments_.push_back({number, static_cast<std::int64_t>(fs::file_size(path, failed))});
      if (failed) fail(kOpen, path, failed.value());
    }
    if (!segments_.empty()) take_up_last();
  } catch (...) {
    if (last_ >= 0) ::close(last_);
    ::close(lock_);
    throw;
  }
}

VerdictLogWriter::~VerdictLogWriter() {
  if (last_ >= 0) ::close(last_);
  ::close(lock_);
}

void VerdictLogWriter::take_up_last() {
  Segment& last = segments_.back();
  const fs::path path = segment_path(directory_, last.number);
  std::size_t end = kHeaderBytes;
  {
    const std::vector<std::byte> bytes = read_from(path, 0).value_or(std::vector<std::byte>());
    require_same(format_, read_header(bytes, path), directory_);
    const auto records = std::span<const std::byte>(bytes).subspan(kHeaderBytes);
    end += for_records(records, [](const auto&) {});
    const auto behind = std::span<const std::byte>(bytes).subspan(end);
    if (!is_torn(behind, format_)) {
      make_room(kVerdictSegmentHeaderBytes);
      return begin_segment();
    }
  }
  last_ = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (last_ < 0) fail(kOpen, path, errno);
  if (static_cast<std::int64_t>(end) < last.n_bytes &&
      ::ftruncate(last_, static_cast<off_t>(end)) != 0) {
    fail(kOpen, path, errno);
  }
  last.n_bytes = static_cast<std::int64_t>(end);
}

void VerdictLogWriter::begin_segment() {
  const std::int64_t number = segments_.empty() ? 1 : segments_.back().number + 1;
  const fs::path path = segment_path(directory_, number);
  AtomicFile file(path);
  file.write(header_bytes(format_));
  file.commit();
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor < 0) fail(kWrite, path, errno);
  if (last_ >= 0) ::close(last_);
  last_ = descriptor;
  segments_.push_back({number, kVerdictSegmentHeaderBytes});
}

std::int64_t VerdictLogWriter::total_bytes() const {
  std::int64_t total = 0;
  for (const Segment& segment : segments_) total += segment.n_bytes;
  return total;
}

// Removes the oldest segments until n_bytes more fit within the limit.
void VerdictLogWriter::make_room(std::int64_t n_bytes) {
  while (segments_.size() > 1 && total_bytes() + n_bytes > max_bytes_) {
    const fs::path path = segment_path(directory_, segments_.front().number);
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(kWrite, path, errno);
    segments_.erase(segments_.begin());
  }
}

std::int64_t VerdictLogWriter::segment_bytes() const {
  return std::min(max_bytes_ / kVerdictSegments, kMaxSegmentBytes);
}

std::int64_t VerdictLogWriter::max_generated(std::int64_t n_prompt) const {
  const std::int64_t room =
      segment_bytes() - kVerdictSegmentHeaderBytes - record_bytes(format_, n_prompt, 0);
  // Each generated token adds its id and its row.
  const std::int64_t each = record_bytes(format_, 1, 1) - record_bytes(format_, 0, 0);
  return std::max<std::int64_t>(0, room / each);
}

void VerdictLogWriter::append(const LoggedText& text) {
  const auto n_prompt = static_cast<std::size_t>(text.n_prompt);
  const auto n_generated = static_cast<std::size_t>(
      std::min<std::int64_t>(text.n_generated(), max_generated(text.n_prompt)));
  if (n_prompt == 0 || n_generated == 0) return;
  const auto n_kept = static_cast<std::size_t>(format_.n_kept);
  const std::int64_t n_bytes =
      record_bytes(format_, static_cast<std::int64_t>(n_prompt + n_generated),
                   static_cast<std::int64_t>(n_generated));

  record_.clear();
  Packer packer(record_);
  packer.put(static_cast<std::uint64_t>(n_bytes) - kRecordHeadBytes);
  packer.put(std::uint64_t{0});  // placeholder for the checksum
  packer.put(static_cast<std::uint32_t>(n_prompt));
  packer.put(static_cast<std::uint32_t>(n_generated));
  packer.put(std::span<const TokenId>(text.tokens).first(n_prompt + n_generated));
  for (std::size_t row = 0; row < n_generated; ++row) {
    packer.put(text.rest_logprobs[row]);
    packer.put(std::span<const TokenId>(text.kept_ids).subspan(row * n_kept, n_kept));
    packer.put(std::span<const float>(text.kept_logprobs).subspan(row * n_kept, n_kept));
  }
  const std::uint64_t sum = checksum(std::span<const std::byte>(record_).subspan(kRecordHeadBytes));
  std::memcpy(record_.data() + sizeof(std::uint64_t), &sum, sizeof(sum));

  if (segments_.empty() || (segments_.back().n_bytes > kVerdictSegmentHeaderBytes &&
                            segments_.back().n_bytes + n_bytes > segment_bytes())) {
    make_room(kVerdictSegmentHeaderBytes + n_bytes);
    begin_segment();
  }
  make_room(n_bytes);
  Segment& last = segments_.back();
  try {
    write_all(last_, record_, segment_path(directory_, last.number));
  } catch (const Error&) {
    // If this fails too, readers skip the torn bytes.
    (void)!::ftruncate(last_, static_cast<off_t>(last.n_bytes));
    throw;
  }
  last.n_bytes += n_bytes;
}

VerdictSegment parse_verdict_segment(std::span<const std::byte> bytes, const fs::path& path) {
  VerdictSegment segment{.format = read_header(bytes, path), .texts = {}};
  segment.n_bytes = kVerdictSegmentHeaderBytes +
                    read_records(bytes.subspan(kHeaderBytes), segment.format, path, segment.texts);
  return segment;
}

VerdictLogReader::VerdictLogReader(fs::path directory) : directory_(std::move(directory)) {
  std::error_code failed;
  if (!fs::is_directory(directory_, failed)) {
    throw Error(kRead, directory_.string(), "a directory that --verdict-log has written",
                fs::exists(directory_, failed) ? "a file" : "none");
  }
}

std::vector<LoggedText> VerdictLogReader::read_new() {
  std::vector<LoggedText> texts;
  const std::vector<std::int64_t> numbers = segment_numbers(kRead, directory_);
  if (numbers.empty()) return texts;
  oldest_ = numbers.front();
  for (const std::int64_t number : numbers) {
    if (number < segment_) continue;
    if (number > segment_) {
      segment_ = number;
      offset_ = 0;
    }
    read_segment(number, texts);
  }
  return texts;
}

void VerdictLogReader::read_segment(std::int64_t number, std::vector<LoggedText>& texts) {
  const fs::path path = segment_path(directory_, number);
  const auto bytes = read_from(path, offset_);
  if (!bytes) return;  // it was removed after the listing
  const std::size_t n_before = texts.size();
  std::span<const std::byte> records = *bytes;
  if (offset_ == 0) {
    // Checked before its texts, since those of another target may be invalid here.
    const VerdictLogFormat format = read_header(records, path);
    if (format_ && *format_ != format) {
      throw Error(kRead, path.string(), "a segment of the same target as the others",
                  "one of another");
    }
    format_ = format;
    offset_ = kVerdictSegmentHeaderBytes;
    records = records.subspan(kHeaderBytes);
  }
  offset_ += read_records(records, *format_, path, texts);
  for (std::size_t i = n_before; i < texts.size(); ++i) texts[i].segment = number;
}

}  // namespace outrider
