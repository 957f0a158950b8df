// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/patterns/pre_tokenizer.h"

#include <algorithm>
#include <string_view>

#include "tokenizer/texts/byte_level.h"
#include "tokenizer/texts/utf8.h"

namespace outrider {
namespace {

// Words that are split at once: enough to make the cost per part small, few enough to stay in L1.
constexpr std::size_t kPart = 512;

// A step's whole input and output.
struct CutText {
  std::string_view text;
  std::vector<TextRange>& pieces;
  std::string& rewritten;  // the text, if the step rewrites it
  bool at_start;
};

std::string_view view(const CutText& cut, const TextRange& piece) {
  return cut.text.substr(piece.begin, piece.end - piece.begin);
}

// A range of one piece, and whether it meets the splitter's criterion.
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
    case SplitBehavior::kMergedWithPrevious:  // among consecutive matches only the first merges
      for (const Stretch& stretch : stretches) {
        if (stretch.is_match && !previous_match && out.size() > first) {
          out.back().end = stretch.range.end;
        } else {
          out.push_back(stretch.range);
        }
        previous_match = stretch.is_match;
      }
      break;
    case SplitBehavior::kMergedWithNext:  // among consecutive matches only the last merges
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
  std::string& out = cut.rewritten;
  out.reserve(cut.text.size() + cut.text.size() / 2);
  std::vector<TextRange> pieces;
  pieces.reserve(cut.pieces.size());
  std::vector<TextRange> matches;
  std::string prefixed;
  const auto spell = [&](std::string_view bytes) {
    if (bytes.empty()) return;
    const std::size_t begin = out.size();
    append_byte_level(bytes, out);
    pieces.push_back({begin, out.size()});
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
  cut.pieces = std::move(pieces);
  cut.text = out;
}

void step(const MetaspaceWords& words, CutText& cut, MatchScratch&) {
  using Prepend = MetaspaceWords::Prepend;
  std::string& out = cut.rewritten;
  out.reserve(cut.text.size() + cut.text.size() / 2);
  std::vector<TextRange> pieces;
  const std::string& mark = words.replacement;
  for (const TextRange& piece : cut.pieces) {
    const std::string_view text = view(cut, piece);
    const bool marked = text.front() == ' ' || text.starts_with(mark);
    const bool prepend = words.prepend == Prepend::kAlways ||
                         (words.prepend == Prepend::kFirst && cut.at_start && piece.begin == 0);
    std::size_t begin = out.size();
    if (prepend && !marked) out.append(mark);
    const auto cut_here = [&](std::size_t at) {
      if (words.split && at > begin) {
        pieces.push_back({begin, at});
        begin = at;
      }
    };
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == ' ') {
        cut_here(out.size());
        out.append(mark);
        ++at;
      } else if (text.substr(at, mark.size()) == mark) {
        cut_here(out.size());
        out.append(mark);
        at += mark.size();
      } else {
        out.push_back(text[at++]);
      }
    }
    if (out.size() > begin) pieces.push_back({begin, out.size()});
  }
  cut.pieces = std::move(pieces);
  cut.text = out;
}

bool cuts_by_parts(const PreTokenizerStep& step) {
  if (const auto* const split = std::get_if<SplitByPattern>(&step)) {
    return split->behavior == SplitBehavior::kIsolated;
  }
  const auto* const split = std::get_if<SplitByClass>(&step);
  return split != nullptr && split->behavior == SplitBehavior::kIsolated;
}

}  // namespace

PreTokenizer::PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {
  if (steps_.empty()) return;
  auto* const last = std::get_if<ByteLevelWords>(&steps_.back());
  if (last == nullptr || last->add_prefix_space) return;
  words_are_bytes_ = true;
  if (last->use_regex) {
    steps_.back() = SplitByPattern{std::move(last->pattern), SplitBehavior::kIsolated, false};
  } else {
    steps_.pop_back();
  }
}

void Cutting::start(const PreTokenizer& pre_tokenizer, std::string_view text, bool at_start) {
  pre_tokenizer_ = &pre_tokenizer;
  n_steps_ = pre_tokenizer.steps_.size();
  at_start_ = at_start;
  is_started_ = false;
  if (stages_.size() <= n_steps_) stages_.resize(n_steps_ + 1);
  for (Stage& stage : stages_) {
    stage.pieces.clear();
    stage.rewritten.clear();
    stage.n_taken = 0;
    stage.in_piece = false;
  }
  stages_[0].text = text;
}

std::span<const TextRange> Cutting::next(MatchScratch& scratch) {
  fill(n_steps_, scratch);
  return stages_[n_steps_].pieces;
}

// The next pieces from step i - 1; false if there are none.
bool Cutting::fill(std::size_t i, MatchScratch& scratch) {
  Stage& stage = stages_[i];
  stage.pieces.clear();
  stage.n_taken = 0;
  if (i == 0) {
    if (!is_started_ && !stage.text.empty()) stage.pieces.push_back({0, stage.text.size()});
    is_started_ = true;
    return !stage.pieces.empty();
  }
  const PreTokenizerStep& one = pre_tokenizer_->steps_[i - 1];
  if (cuts_by_parts(one)) {
    fill_by_parts(i, scratch);
    return !stage.pieces.empty();
  }
  const Stage& before = stages_[i - 1];
  while (fill(i - 1, scratch)) {
    stage.pieces.insert(stage.pieces.end(), before.pieces.begin(), before.pieces.end());
  }
  if (stage.pieces.empty()) return false;
  CutText cut{before.text, stage.pieces, stage.rewritten, at_start_};
  std::visit([&](const auto& kind) { step(kind, cut, scratch); }, one);
  stage.text = cut.text;
  return !stage.pieces.empty();
}

void Cutting::fill_by_parts(std::size_t i, MatchScratch& scratch) {
  Stage& stage = stages_[i];
  Stage& before = stages_[i - 1];
  const PreTokenizerStep& one = pre_tokenizer_->steps_[i - 1];
  while (stage.pieces.size() < kPart) {
    if (!stage.in_piece) {
      if (before.n_taken == before.pieces.size() && !fill(i - 1, scratch)) break;
      stage.text = before.text;
      stage.piece = before.pieces[before.n_taken++];
      stage.in_piece = true;
      stage.search = {};
      stage.done = 0;
    }
    if (const auto* const split = std::get_if<SplitByPattern>(&one)) {
      cut_part(*split, stage, scratch);
    } else {
      cut_part(std::get<SplitByClass>(one), stage, scratch);
    }
  }
}

void Cutting::cut_part(const SplitByPattern& split, Stage& stage, MatchScratch& scratch) {
  const TextRange piece = stage.piece;
  const std::string_view text = stage.text.substr(piece.begin, piece.end - piece.begin);
  stage.in_piece = split.pattern.find_next(text, kPart, stage.search, scratch, matches_);
  const auto put = [&](std::size_t begin, std::size_t end) {
    if (begin < end) stage.pieces.push_back({piece.begin + begin, piece.begin + end});
  };
  for (const TextRange& match : matches_) {
    put(stage.done, match.begin);
    put(match.begin, match.end);
    stage.done = match.end;
  }
  if (!stage.in_piece) put(stage.done, text.size());
}

void Cutting::cut_part(const SplitByClass& split, Stage& stage, MatchScratch&) {
  const TextRange piece = stage.piece;
  std::size_t begin = piece.begin + stage.done;
  std::size_t at = begin;
  while (at < piece.end && stage.pieces.size() < kPart) {
    const CodePoint character = code_point_at(stage.text, at);
    const std::size_t end = at + static_cast<std::size_t>(character.n_bytes);
    if (split.contains(character.value)) {
      if (begin < at) stage.pieces.push_back({begin, at});
      stage.pieces.push_back({at, end});
      begin = end;
    }
    at = end;
  }
  stage.done = begin - piece.begin;
  if (at < piece.end) return;
  if (begin < at) stage.pieces.push_back({begin, at});
  stage.in_piece = false;
}

}  // namespace outrider
