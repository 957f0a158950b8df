// Where a command may write: not over what it reads.
#ifndef OUTRIDER_APPS_OUTPUT_PLACE_H_
#define OUTRIDER_APPS_OUTPUT_PLACE_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider::cli {

// Throws Error("write file", ...) if `out` is there and is one of the files `read`, under whatever
// name, or stands in one that is a folder, or below. What cannot be looked at is no matter: whoever
// reads it will say so.
void require_not_read(const std::string& out, const std::vector<std::filesystem::path>& read);

// Appends a model's own files: itself, or of a directory those that loading reads. None of "".
void add_files_of_model(const std::filesystem::path& model,
                        std::vector<std::filesystem::path>& files);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_OUTPUT_PLACE_H_
