// SPDX-License-Identifier: Apache-2.0
// Lists the files of a folder, for callers that accept a folder instead of a file.
#ifndef OUTRIDER_BASE_FILES_FILES_BELOW_H_
#define OUTRIDER_BASE_FILES_FILES_BELOW_H_

#include <filesystem>
#include <vector>

namespace outrider {

// All files, including sub-folders, in the order of their paths. Leaves out names that begin with a
// dot, and partial files of killed writers (atomic_file.h). Throws
// std::filesystem::filesystem_error if a folder cannot be read.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_FILES_BELOW_H_
