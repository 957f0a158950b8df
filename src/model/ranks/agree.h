// Whether ranks may hold a model together: what would change a bit must be the same on all of them.
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
  std::string value;  // of one line
};

// Compares every rank's facts with rank 0's. Throws UsageError, the same one on every rank, that
// names the first fact that differs, and where. Collective.
void agree(Communicator& ranks, const std::vector<RankFact>& facts);

// Checksums, as text. Of the program that runs, all of its file: two builds of one version differ.
std::string program_checksum();
// Of a model: its configuration (config.json, or the beginning of a GGUF file), the name, type and
// shape of every tensor, and some bytes of each: reading all of them would read what other ranks
// have. So another model, another fine-tune or another quantisation shows, and a single damaged
// byte as a rule does not. Throws Error where the file cannot be read.
std::string model_checksum(const std::filesystem::path& path, const TensorSource& source);

}  // namespace outrider

#endif  // OUTRIDER_MODEL_RANKS_AGREE_H_
