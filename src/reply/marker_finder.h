// Finds markers in a text that comes byte by byte: what may still become one is held back, all else
// is let go at once. A text has the same markers however it is cut into pushes.
#ifndef OUTRIDER_REPLY_MARKER_FINDER_H_
#define OUTRIDER_REPLY_MARKER_FINDER_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

// No marker may be the beginning of another. Not thread-safe.
class MarkerFinder {
 public:
  explicit MarkerFinder(std::vector<std::string> markers);

  // Appends to `out` what is certainly no part of a marker. Returns the marker (its place in the
  // list) that `byte` ends; it is not in `out`. A byte costs at most the markers' length squared.
  std::optional<std::size_t> push(char byte, std::string& out);

  // What is held back: a proper beginning of a marker, perhaps empty.
  const std::string& held() const { return held_; }
  std::string release();

  // Goes on as if the end of `text` had been pushed; returns how many of its bytes are held now.
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
