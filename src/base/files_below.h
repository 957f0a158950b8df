// The files of a folder, for whoever takes a folder in the place of a file.
#ifndef OUTRIDER_BASE_FILES_BELOW_H_
#define OUTRIDER_BASE_FILES_BELOW_H_

#include <filesystem>
#include <vector>

namespace outrider {

// All files, in sub-folders too, in the order of their paths, but for names that begin with a dot,
// which is not the user's text, and what writers that were killed have left (atomic_file.h). Throws
// std::filesystem::filesystem_error where a folder cannot be read.
std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder);

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_BELOW_H_
