// SPDX-License-Identifier: Apache-2.0
// Draws pictures by running gnuplot as a child process.
#ifndef OUTRIDER_BASE_FILES_GNUPLOT_H_
#define OUTRIDER_BASE_FILES_GNUPLOT_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace outrider {

// Draws `picture` (SVG, or PNG if its name ends in .png) with a size in pixels, by a script that
// sets neither terminal nor output. The script is in a file beside the picture meanwhile. Returns
// false if gnuplot is missing or fails, so that no run depends on its picture. Throws Error if the
// script cannot be written.
bool draw_with_gnuplot(const std::filesystem::path& picture, int width, int height,
                       std::string_view script);

// `text` as a quoted, escaped string of the script.
std::string gnuplot_text(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_BASE_FILES_GNUPLOT_H_
