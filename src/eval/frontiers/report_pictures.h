// SPDX-License-Identifier: Apache-2.0
// The pictures of one report.
#ifndef OUTRIDER_EVAL_FRONTIERS_REPORT_PICTURES_H_
#define OUTRIDER_EVAL_FRONTIERS_REPORT_PICTURES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "eval/frontiers/frontier_plot.h"

namespace outrider::eval {

class ReportPictures {
 public:
  // `beginnings`: prefixes of the names of the report's pictures. Pictures of an earlier report in
  // the directory, of either format, are removed, since they would not match the new tables.
  // `format`: "svg" or "png".
  ReportPictures(std::filesystem::path directory, const std::vector<std::string>& beginnings,
                 std::string format);

  // `name`: without extension. Throws Error if the files cannot be written.
  void draw(const FrontierPlot& plot, const std::string& name);

  // The pictures that could not be drawn, a line for each reason.
  std::vector<std::string> problems() const;

 private:
  std::filesystem::path directory_;
  std::string format_;
  std::vector<std::string> without_points_;
  std::vector<std::string> failed_;
};

}  // namespace outrider::eval

#endif  // OUTRIDER_EVAL_FRONTIERS_REPORT_PICTURES_H_
