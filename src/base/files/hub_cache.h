// SPDX-License-Identifier: Apache-2.0
// Finds a model's files in the Hugging Face hub cache. The cache has a folder for each model,
// "models--OWNER--NAME". In it are a folder of links for each revision, "snapshots/HASH", and the
// hash of each branch in "refs/BRANCH".
#ifndef OUTRIDER_BASE_FILES_HUB_CACHE_H_
#define OUTRIDER_BASE_FILES_HUB_CACHE_H_

#include <filesystem>

namespace outrider {

// If `path` is such a model's folder, returns the snapshot that "refs/main" names, or the only one;
// otherwise `path` unchanged. Throws Error if there are several snapshots and none is named, or the
// named one is missing. Thread-safe.
std::filesystem::path without_hub_cache(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_HUB_CACHE_H_
