// Pictures: gnuplot, run as a child.
#ifndef OUTRIDER_BASE_GNUPLOT_H_
#define OUTRIDER_BASE_GNUPLOT_H_

#include <filesystem>
#include <string>
#include <string_view>

namespace outrider {

// Draws `picture` (SVG, or PNG where its name ends in .png) of a size in pixels by a script that
// says nothing about terminal and output. The script stands beside the picture meanwhile. False if
// there is no gnuplot or it fails: no run depends on its picture. Throws Error where the script
// cannot be written.
bool draw_with_gnuplot(const std::filesystem::path& picture, int width, int height,
                       std::string_view script);

// `text` as a string of the script, in quotes, that means itself.
std::string gnuplot_text(std::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_BASE_GNUPLOT_H_
