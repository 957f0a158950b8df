#include "tokenizer/pre_tokenizer.h"

#include <algorithm>
#include <string_view>

#include "tokenizer/byte_level.h"
#include "tokenizer/utf8.h"

namespace outrider {
namespace {

std::string_view view(const CutText& cut, const TextRange& piece) {
  return std::string_view(cut.text).substr(piece.begin, piece.end - piece.begin);
}

// A stretch of one piece, and whether the splitter's criterion holds in it.
struct Stretch {
  TextRange range;
  bool is_match;
};

void append_stretches(const std::vector<Stretch>& stretches, SplitBehavior behavior,
                      std::vector<TextRange>& out) {
  const std::size_t first = out.size();
  bool previous_match = false;
  switch (behavior) {
    case SplitBehavior::kIsolated:
      for (const Stretch& stretch : stretches) out.push_back(stretch.range);
      break;
    case SplitBehavior::kRemoved:
      for (const Stretch& stretch : stretches) {
        if (!stretch.is_match) out.push_back(stretch.range);
      }
      break;
    case SplitBehavior::kContiguous:
      for (const Stretch& stretch : stretches) {
        if (out.size() > first && stretch.is_match == previous_match) {
          out.back().end = stretch.range.end;
        } else {
          out.push_back(stretch.range);
        }
        previous_match = stretch.is_match;
      }
      break;
    case SplitBehavior::kMergedWithPrevious:  // of several matches in a row only the first merges
      for (const Stretch& stretch : stretches) {
        if (stretch.is_match && !previous_match && out.size() > first) {
          out.back().end = stretch.range.end;
        } else {
          out.push_back(stretch.range);
        }
        previous_match = stretch.is_match;
      }
      break;
    case SplitBehavior::kMergedWithNext:  // of several matches in a row only the last merges
      for (auto stretch = stretches.rbegin(); stretch != stretches.rend(); ++stretch) {
        if (stretch->is_match && !previous_match && out.size() > first) {
          out.back().begin = stretch->range.begin;
        } else {
          out.push_back(stretch->range);
        }
        previous_match = stretch->is_match;
      }
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(first), out.end());
      break;
  }
}

void drop_empty(std::vector<TextRange>& pieces) {
  pieces.erase(std::remove_if(pieces.begin(), pieces.end(),
                              [](const TextRange& piece) { return piece.begin == piece.end; }),
               pieces.end());
}

void step(const SplitByPattern& split, CutText& cut, MatchScratch& scratch) {
  std::vector<TextRange> out;
  out.reserve(cut.pieces.size() * 2);
  std::vector<TextRange> matches;
  std::vector<Stretch> stretches;
  for (const TextRange& piece : cut.pieces) {
    split.pattern.find_all(view(cut, piece), scratch, matches);
    if (matches.empty() && !split.invert) {
      out.push_back(piece);
      continue;
    }
    stretches.clear();
    std::size_t done = piece.begin;
    for (const TextRange& match : matches) {
      const TextRange range{piece.begin + match.begin, piece.begin + match.end};
      if (done < range.begin) stretches.push_back({{done, range.begin}, split.invert});
      stretches.push_back({range, !split.invert});
      done = range.end;
    }
    if (done < piece.end) stretches.push_back({{done, piece.end}, split.invert});
    append_stretches(stretches, split.behavior, out);
  }
  drop_empty(out);
  cut.pieces = std::move(out);
}

void step(const SplitByClass& split, CutText& cut, MatchScratch&) {
  std::vector<TextRange> out;
  std::vector<Stretch> stretches;
  for (const TextRange& piece : cut.pieces) {
    stretches.clear();
    for (std::size_t at = piece.begin; at < piece.end;) {
      const CodePoint character = code_point_at(cut.text, at);
      const bool is_match = split.contains(character.value);
      const std::size_t end = at + static_cast<std::size_t>(character.n_bytes);
      if (!is_match && !stretches.empty() && !stretches.back().is_match) {
        stretches.back().range.end = end;
      } else {
        stretches.push_back({{at, end}, is_match});
      }
      at = end;
    }
    append_stretches(stretches, split.behavior, out);
  }
  drop_empty(out);
  cut.pieces = std::move(out);
}

void step(const SplitWords&, CutText& cut, MatchScratch&) {
  enum class Kind { kWord, kOther, kSpace };
  std::vector<TextRange> out;
  for (const TextRange& piece : cut.pieces) {
    Kind previous = Kind::kSpace;
    for (std::size_t at = piece.begin; at < piece.end;) {
      const CodePoint character = code_point_at(cut.text, at);
      const Kind kind = is_word_character(character.value) ? Kind::kWord
                        : is_white_space(character.value)  ? Kind::kSpace
                                                           : Kind::kOther;
      const std::size_t end = at + static_cast<std::size_t>(character.n_bytes);
      if (kind != Kind::kSpace) {
        if (kind == previous) {
          out.back().end = end;
        } else {
          out.push_back({at, end});
        }
      }
      previous = kind;
      at = end;
    }
  }
  cut.pieces = std::move(out);
}

void step(const ByteLevelWords& words, CutText& cut, MatchScratch& scratch) {
  CutText out;
  out.text.reserve(cut.text.size() + cut.text.size() / 2);
  out.pieces.reserve(cut.pieces.size());
  out.at_start = cut.at_start;
  std::vector<TextRange> matches;
  std::string prefixed;
  const auto spell = [&](std::string_view bytes) {
    if (bytes.empty()) return;
    const std::size_t begin = out.text.size();
    append_byte_level(bytes, out.text);
    out.pieces.push_back({begin, out.text.size()});
  };
  for (const TextRange& piece : cut.pieces) {
    std::string_view text = view(cut, piece);
    if (words.add_prefix_space && text.front() != ' ') {
      prefixed.assign(1, ' ');
      prefixed.append(text);
      text = prefixed;
    }
    if (!words.use_regex) {
      spell(text);
      continue;
    }
    words.pattern.find_all(text, scratch, matches);
    std::size_t done = 0;
    for (const TextRange& match : matches) {
      spell(text.substr(done, match.begin - done));
      spell(text.substr(match.begin, match.end - match.begin));
      done = match.end;
    }
    spell(text.substr(done));
  }
  cut = std::move(out);
}

void step(const MetaspaceWords& words, CutText& cut, MatchScratch&) {
  using Prepend = MetaspaceWords::Prepend;
  CutText out;
  out.text.reserve(cut.text.size() + cut.text.size() / 2);
  out.at_start = cut.at_start;
  const std::string& mark = words.replacement;
  for (const TextRange& piece : cut.pieces) {
    const std::string_view text = view(cut, piece);
    const bool marked = text.front() == ' ' || text.starts_with(mark);
    const bool prepend = words.prepend == Prepend::kAlways ||
                         (words.prepend == Prepend::kFirst && cut.at_start && piece.begin == 0);
    std::size_t begin = out.text.size();
    if (prepend && !marked) out.text.append(mark);
    const auto cut_here = [&](std::size_t at) {
      if (words.split && at > begin) {
        out.pieces.push_back({begin, at});
        begin = at;
      }
    };
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == ' ') {
        cut_here(out.text.size());
        out.text.append(mark);
        ++at;
      } else if (text.substr(at, mark.size()) == mark) {
        cut_here(out.text.size());
        out.text.append(mark);
        at += mark.size();
      } else {
        out.text.push_back(text[at++]);
      }
    }
    if (out.text.size() > begin) out.pieces.push_back({begin, out.text.size()});
  }
  cut = std::move(out);
}

}  // namespace

void PreTokenizer::apply(CutText& cut, MatchScratch& scratch) const {
  drop_empty(cut.pieces);
  for (const PreTokenizerStep& one : steps_) {
    std::visit([&](const auto& kind) { step(kind, cut, scratch); }, one);
  }
}

}  // namespace outrider
