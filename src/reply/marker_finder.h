// SPDX-License-Identifier: Apache-2.0
// Finds markers in a text that comes byte by byte. Holds back the possible beginning of a marker,
// and releases everything else at once. The result does not depend on how the text is cut into
// pushes.
#ifndef OUTRIDER_REPLY_MARKER_FINDER_H_
#define OUTRIDER_REPLY_MARKER_FINDER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// No marker may be a prefix of another. Not thread-safe.
class MarkerFinder {
 public:
  explicit MarkerFinder(std::vector<std::string> markers);

  // Appends to `out` what is certainly not part of a marker. Returns the index of the marker that
  // `byte` completes, if any; the marker is not in `out`. A byte costs at most the markers' length
  // squared.
  std::optional<std::size_t> push(char byte, std::string& out);

  // The text held back: a proper prefix of a marker, possibly empty.
  const std::string& held() const { return held_; }
  std::string release();

  // Continues as if the end of `text` had been pushed; returns how many of its bytes are held now.
  std::size_t resume_behind(std::string_view text);

  const std::vector<std::string>& markers() const { return markers_; }

 private:
  bool begins_marker(std::string_view text) const;

  std::vector<std::string> markers_;
  std::size_t longest_ = 0;
  std::string held_;
};

}  // namespace outrider

#endif  // OUTRIDER_REPLY_MARKER_FINDER_H_
