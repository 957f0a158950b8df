// SPDX-License-Identifier: Apache-2.0
// Checks that ranks can hold a model together: everything that affects bits must be equal on all of
// them.
#ifndef OUTRIDER_MODEL_RANKS_AGREE_H_
#define OUTRIDER_MODEL_RANKS_AGREE_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/tensor_source.h"
#include "model/ranks/communicator.h"

namespace outrider {

struct RankFact {
  std::string name;   // in words: "kernel table"
  std::string value;  // one line
};

// Compares every rank's facts with rank 0's. Throws UsageError, the same on every rank, with the
// first fact that differs, and the rank. Collective.
void agree(Communicator& ranks, const std::vector<RankFact>& facts);

// A checksum, as text, of the whole file of the running program: two builds of one version differ.
std::string program_checksum();
// A checksum, as text, of a model. It covers the first MiB of its configuration (config.json, or
// the beginning of a GGUF file), the name, type and shape of every tensor, and samples of their
// bytes: 64 bytes at 8 places of each tensor. With more than 4096 tensors there are fewer samples
// of each, and with more than kMaxSamples only every k-th tensor is sampled. So it reads at most 2
// MiB of tensors, from 32,768 places, whatever the file contains. (Reading all bytes would read
// what other ranks hold, too.)
//
// It detects another model, another architecture or setting, another quantisation, and a fine-tune
// that changed numbers in most tensors. It does not detect a change between the samples: a damaged
// byte, an edit of some rows, an adapter merged into few layers. It is no protection against two
// files that were made alike on purpose. Throws Error if the file cannot be read.
inline constexpr std::size_t kMaxSamples = std::size_t{1} << 15;
std::string model_checksum(const std::filesystem::path& path, const TensorSource& source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_AGREE_H_
