// The drafters that a model has without being given any.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
#define OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider {

// Specs for the model at this path: "suffix", which needs nothing; "mtp" where the config.json of a
// directory names modules behind the layers; the heads in its folders "mtp", "eagle" and "medusa",
// where these have a config.json. Of a .gguf file: "suffix". Nothing is loaded. Throws Error for a
// config.json that is no JSON object.
std::vector<std::string> own_parts(const std::filesystem::path& target);

// One spec of each kind that own_parts() may name, with paths that stand for any.
std::vector<std::string> every_own_part();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
