// The drafters that a model has without being given any.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
#define OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider {

// Specs for the model at this path: "suffix", which needs nothing; "mtp" where the model's own
// files have modules for multi-token prediction; of a directory, heads and modules in folders of
// its own whose config.json is one's, in the order of names. Nothing is loaded but headers. Throws
// Error for a config.json of the model that is no JSON object, or for modules that are announced in
// tensors that cannot be read.
std::vector<std::string> own_parts(const std::filesystem::path& target);

// One spec of each kind that own_parts() may name, with paths that stand for any.
std::vector<std::string> every_own_part();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
