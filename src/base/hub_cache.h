// Where the files of a model are that Hugging Face's hub cache holds: the cache has a folder for
// each model, "models--OWNER--NAME", with a folder of links for each revision, "snapshots/HASH",
// and the hash of each branch in "refs/BRANCH".
#ifndef OUTRIDER_BASE_HUB_CACHE_H_
#define OUTRIDER_BASE_HUB_CACHE_H_

#include <filesystem>

namespace outrider {

// The snapshot that "refs/main" names, or the only one, where `path` is such a model's folder;
// otherwise `path` as it is. Throws Error where there are several snapshots and none is named, or
// the named one is not there. Thread-safe.
std::filesystem::path without_hub_cache(const std::filesystem::path& path);

}  // namespace outrider

#endif  // OUTRIDER_BASE_HUB_CACHE_H_
