// SPDX-License-Identifier: Apache-2.0
// Checks that a command does not overwrite its input.
#ifndef OUTRIDER_APPS_CLI_OUTPUT_PLACE_H_
#define OUTRIDER_APPS_CLI_OUTPUT_PLACE_H_

#include <filesystem>
#include <string>
#include <vector>

namespace outrider::cli {

// Throws Error("write file", ...) if `out` exists and is one of the files `read`, under any name,
// or is in or below a folder of `read`. Files that cannot be inspected are skipped: reading them
// will report the error.
void require_not_read(const std::string& out, const std::vector<std::filesystem::path>& read);

// Appends the files of a model: the file itself, or the files of a directory that loading reads.
// None for "".
void add_files_of_model(const std::filesystem::path& model,
                        std::vector<std::filesystem::path>& files);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_CLI_OUTPUT_PLACE_H_
