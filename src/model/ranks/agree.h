// Checks that ranks can hold a model together: everything that affects bits must be equal on all of
// them.
#ifndef OUTRIDER_MODEL_RANKS_AGREE_H_
#define OUTRIDER_MODEL_RANKS_AGREE_H_

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
// A checksum, as text, of a model: its configuration (config.json, or the beginning of a GGUF
// file), the name, type and shape of every tensor, and some bytes of each. (Reading all bytes would
// read what other ranks hold.) It detects another model, another fine-tune or another quantisation,
// but usually not a single damaged byte. Throws Error if the file cannot be read.
std::string model_checksum(const std::filesystem::path& path, const TensorSource& source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_AGREE_H_
