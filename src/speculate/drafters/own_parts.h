// SPDX-License-Identifier: Apache-2.0
// The drafters that a model has without any being named.
#ifndef OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
#define OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider {

// Specs for the model at this path: "suffix", which needs nothing; "mtp" if the model's files have
// modules for multi-token prediction; and for a directory, heads and modules in sub-folders whose
// config.json identifies them, in the order of names. Reads headers only. Throws Error if the
// model's config.json is not a JSON object, or if tensors of announced modules cannot be read.
std::vector<std::string> own_parts(const std::filesystem::path& target);

// One spec of each kind that own_parts() may return, with placeholder paths.
std::vector<std::string> every_own_part();

}  // namespace outrider

#endif  // OUTRIDER_SPECULATE_DRAFTERS_OWN_PARTS_H_
