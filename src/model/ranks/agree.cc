// SPDX-License-Identifier: Apache-2.0
#include "model/ranks/agree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>

#include "base/bytes_of.h"
#include "base/checksum.h"
#include "base/files/hub_cache.h"
#include "base/files/mapped_file.h"
#include "outrider/error.h"

namespace outrider {
namespace {

// The part before the tensors of a GGUF file, usually: its metadata.
constexpr std::size_t kBeginning_bytes = std::size_t{1} << 20;
// Samples of a tensor's bytes, unless there are too many tensors.
constexpr std::size_t kSamplesOfTensor = 8;
constexpr std::size_t kSample_bytes = 64;

std::uint64_t checksum_of(std::string_view text, std::uint64_t start) {
  return checksum(std::as_bytes(std::span(text)), start);
}

// The checksum of a tensor's name, type and shape.
std::uint64_t checksum_of(const TensorView& tensor, std::uint64_t start) {
  std::uint64_t sum = checksum_of(tensor.name, start);
  sum = checksum_of(tensor.type_name(), sum);
  for (const std::int64_t n : tensor.shape) sum = checksum(bytes_of(n), sum);
  return sum;
}

// n_samples of its bytes: the first, the last and some between; a single one is from the middle.
std::uint64_t checksum_of_samples(std::span<const std::byte> data, std::size_t n_samples,
                                  std::uint64_t start) {
  std::uint64_t sum = start;
  const std::size_t n = std::min(kSample_bytes, data.size());
  const std::size_t max_begin = data.size() - n;
  for (std::size_t i = 0; i < n_samples; ++i) {
    const std::size_t begin = n_samples == 1 ? max_begin / 2 : max_begin / (n_samples - 1) * i;
    sum = checksum(data.subspan(begin, n), sum);
  }
  return sum;
}

// One fact per line.
std::string text_of(const std::vector<RankFact>& facts) {
  std::string text;
  for (const RankFact& fact : facts) text += fact.value + "\n";
  return text;
}

std::string_view line_of(std::string_view text, std::size_t number) {
  for (std::size_t i = 0; i < number; ++i) {
    text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  }
  return text.substr(0, text.find('\n'));
}

}  // namespace

void agree(Communicator& ranks, const std::vector<RankFact>& facts) {
  const std::vector<std::string> all =
      ranks.exchange_texts(text_of(facts), Communicator::Patience::loading);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::string_view expected = line_of(all.front(), i);
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const std::string_view got = line_of(all[rank], i);
      if (got == expected) continue;
      throw UsageError("start ranks", facts[i].name,
                       fmt::format("{} on every rank, as on rank 0", expected),
                       fmt::format("{} on rank {}", got, rank));
    }
  }
}

std::string program_checksum() {
  const MappedFile program("/proc/self/exe");
  return fmt::format("{:016x}", checksum(program.bytes()));
}

std::string model_checksum(const std::filesystem::path& given, const TensorSource& source) {
  const std::filesystem::path path = without_hub_cache(given);
  std::error_code ignored;
  const bool is_directory = std::filesystem::is_directory(path, ignored);
  const MappedFile file(is_directory ? path / "config.json" : path);
  std::uint64_t sum =
      checksum(file.bytes().subspan(0, std::min(file.bytes().size(), kBeginning_bytes)));
  const auto& tensors = source.tensors();
  const std::size_t n_tensors = tensors.size();
  const std::size_t n_samples = std::clamp<std::size_t>(
      kMaxSamples / std::max<std::size_t>(n_tensors, 1), 1, kSamplesOfTensor);
  const std::size_t stride = (n_tensors + kMaxSamples - 1) / kMaxSamples;
  for (std::size_t i = 0; i < n_tensors; ++i) {
    sum = checksum_of(tensors[i], sum);
    if (i % stride != 0) continue;
    sum = checksum_of_samples(tensors[i].data, n_samples, sum);
    source.release(tensors[i]);
  }
  return fmt::format("{:016x}", sum);
}

}  // namespace outrider
