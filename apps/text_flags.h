// The flag that names text to read.
#ifndef OUTRIDER_APPS_TEXT_FLAGS_H_
#define OUTRIDER_APPS_TEXT_FLAGS_H_

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace outrider::cli {

// --text, required: files and folders.
void add_text_paths(CLI::App& app, std::vector<std::filesystem::path>& texts,
                    const std::string& group);

}  // namespace outrider::cli

#endif  // OUTRIDER_APPS_TEXT_FLAGS_H_
