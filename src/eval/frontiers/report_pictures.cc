// SPDX-License-Identifier: Apache-2.0
#include "eval/frontiers/report_pictures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace outrider::eval {

namespace fs = std::filesystem;

ReportPictures::ReportPictures(fs::path directory, const std::vector<std::string>& beginnings,
                               std::string format)
    : directory_(std::move(directory)), format_(std::move(format)) {
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    const std::string name = entry.path().filename().string();
    const bool is_picture = name.ends_with(".svg") || name.ends_with(".png");
    if (is_picture &&
        std::any_of(beginnings.begin(), beginnings.end(),
                    [&](const std::string& begin) { return name.starts_with(begin); })) {
      old.push_back(entry.path());
    }
  }
  for (const fs::path& picture : old) fs::remove(picture);
}

void ReportPictures::draw(const FrontierPlot& plot, const std::string& name) {
  const std::string file = name + "." + format_;
  switch (eval::draw(plot, directory_ / file)) {
    case Drawn::yes:
      return;
    case Drawn::no_point:
      without_points_.push_back(file);
      return;
    case Drawn::failed:
      failed_.push_back(file);
  }
}

std::vector<std::string> ReportPictures::problems() const {
  std::vector<std::string> lines;
  if (!without_points_.empty()) {
    lines.push_back(fmt::format("not drawn, since no point has a number on both axes: {}",
                                fmt::join(without_points_, ", ")));
  }
  if (!failed_.empty()) {
    lines.push_back(fmt::format("not drawn (is gnuplot installed?): {}", fmt::join(failed_, ", ")));
  }
  return lines;
}

}  // namespace outrider::eval
