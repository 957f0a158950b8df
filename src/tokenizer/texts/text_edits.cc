// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/texts/text_edits.h"

#include <algorithm>

namespace outrider {

void TextEdits::add(const TextRange& before, const TextRange& after) {
  const auto small = [](std::size_t at) { return static_cast<std::uint32_t>(at); };
  edits_.push_back({small(before.begin), small(before.end), small(after.begin), small(after.end)});
}

void TextEdits::cut_after(std::size_t n_before, std::size_t n_after) {
  while (!edits_.empty() && edits_.back().after_begin >= n_after) edits_.pop_back();
  std::size_t dropped = n_after;  // how much is dropped from there on, of the text before
  if (!edits_.empty()) {
    Edit& last = edits_.back();
    dropped = last.before_end;
    if (last.after_end > n_after) {
      last.after_end = static_cast<std::uint32_t>(n_after);
    } else {
      dropped += n_after - last.after_end;
    }
  }
  if (dropped < n_before) add({dropped, n_before}, {n_after, n_after});
}

TextRange TextEdits::to_after(const TextRange& range) const {
  const auto next = std::partition_point(edits_.begin(), edits_.end(), [&](const Edit& edit) {
    return edit.before_end < range.begin ||
           (edit.before_end == range.begin && edit.before_begin < edit.before_end);
  });
  TextRange moved = range;
  if (next != edits_.end() && next->before_begin <= range.begin) {
    moved.begin = next->after_begin;
  } else if (next != edits_.begin()) {
    moved.begin = next[-1].after_end + (range.begin - next[-1].before_end);
  }
  const auto behind = std::partition_point(edits_.begin(), edits_.end(), [&](const Edit& edit) {
    return edit.before_begin < range.end;
  });
  if (behind != edits_.begin()) {
    const Edit& last = behind[-1];
    moved.end = last.after_end + (range.end > last.before_end ? range.end - last.before_end : 0);
  }
  return {moved.begin, std::max(moved.begin, moved.end)};
}

TextRange TextEdits::to_before(const TextRange& range) const {
  const auto next = std::partition_point(edits_.begin(), edits_.end(), [&](const Edit& edit) {
    return edit.after_end <= range.begin;
  });
  TextRange moved = range;
  if (next != edits_.end() && next->after_begin <= range.begin) {
    moved.begin = next->before_begin;
  } else if (next != edits_.begin()) {
    moved.begin = next[-1].before_end + (range.begin - next[-1].after_end);
  }
  const auto behind = std::partition_point(
      edits_.begin(), edits_.end(), [&](const Edit& edit) { return edit.after_begin < range.end; });
  if (behind != edits_.begin()) {
    const Edit& last = behind[-1];
    moved.end = last.before_end + (range.end > last.after_end ? range.end - last.after_end : 0);
  }
  return {moved.begin, std::max(moved.begin, moved.end)};
}

}  // namespace outrider
