// SPDX-License-Identifier: Apache-2.0
#include "train/batches/verdict_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/checksum.h"
#include "outrider/error.h"

namespace outrider::train {
namespace {

constexpr const char* kOperation = "read verdict log";

// The most batches in an evaluation, as for the other objectives.
constexpr int kHeldOutBatches = 8;

void require_fitting(const VerdictLogFormat& log, const LearningDrafter& drafter,
                     const std::filesystem::path& path) {
  if (log.vocabulary == drafter.vocabulary) return;
  throw Error(kOperation, path.string(),
              fmt::format("a log of the vocabulary of the drafter {}", drafter.path.string()),
              fmt::format("one of another ({} rows; the drafter has {})", log.n_vocabulary,
                          drafter.n_vocabulary));
}

// Matrices may be padded to different sizes for one vocabulary; such ids never occur.
void require_fitting(const LoggedText& text, const LearningDrafter& drafter,
                     const std::filesystem::path& path) {
  const auto is_beyond = [&](TokenId id) { return id >= drafter.n_vocabulary; };
  if (std::any_of(text.tokens.begin(), text.tokens.end(), is_beyond) ||
      std::any_of(text.kept_ids.begin(), text.kept_ids.end(), is_beyond)) {
    throw Error(kOperation, path.string(),
                fmt::format("token ids below the drafter's {}", drafter.n_vocabulary),
                "greater ones");
  }
}

}  // namespace

VerdictTexts::VerdictTexts(const std::filesystem::path& log, const LearningDrafter& drafter,
                           const BatchShape& shape, double held_out_share)
    : drafter_(drafter), shape_(shape), held_out_share_(held_out_share), path_(log), reader_(log) {
  refresh();
}

int VerdictTexts::refresh() {
  std::vector<LoggedText> fresh = reader_.read_new();
  if (reader_.format()) require_fitting(*reader_.format(), drafter_, path_);
  const std::int64_t oldest = reader_.oldest_segment();
  const std::size_t n_before = texts_.size();
  while (!texts_.empty() && texts_.front().logged.segment < oldest) texts_.pop_front();
  if (fresh.empty() && texts_.size() == n_before) return 0;
  for (LoggedText& text : fresh) {
    require_fitting(text, drafter_, path_);
    const std::uint64_t sum = checksum(std::as_bytes(std::span(text.tokens)));
    texts_.push_back({std::move(text), sum});
  }
  cut();
  return static_cast<int>(fresh.size());
}

std::uint64_t VerdictTexts::fingerprint() const {
  std::uint64_t all = 0;
  for (const Text& text : texts_) all = mix(all, text.sum);
  return all;
}

void VerdictTexts::cut() {
  training_ = {};
  held_out_ = {};
  n_judged_ = 0;
  for (const Text& text : texts_) {
    // A share of all hashes; mixed, since the checksum's high bits may not be uniform.
    const bool is_held_out = static_cast<double>(mix(text.sum, 0)) < held_out_share_ * 0x1p64;
    cut_text(text.logged, is_held_out ? held_out_ : training_);
    n_judged_ += text.logged.n_generated();
  }
  make_source(training_);
  make_source(held_out_);
  held_out_.n_batches = std::min(held_out_.n_batches, kHeldOutBatches);
}

void VerdictTexts::cut_text(const LoggedText& text, Side& side) const {
  const auto n_tokens = static_cast<int>(text.tokens.size());
  int judged = text.n_prompt;  // everything before is judged
  while (judged < n_tokens) {
    const bool whole = n_tokens <= shape_.length;
    const int begin = whole ? 0 : std::max(0, judged - std::max(1, shape_.length / 2));
    const int end = std::min(n_tokens, begin + shape_.length);
    side.windows.push_back({&text, begin, judged - begin, end});
    judged = end;
  }
}

void VerdictTexts::make_source(Side& side) const {
  if (side.windows.empty()) return;
  std::vector<Example> examples;
  for (const Window& window : side.windows) {
    examples.push_back({.tokens = {window.text->tokens.begin() + window.begin,
                                   window.text->tokens.begin() + window.end},
                        .n_prompt = window.n_prompt});
  }
  constexpr TokenId kPadding = 0;  // it comes after all judged tokens, and nothing reads it
  side.source = std::make_shared<ExampleSource>(std::move(examples), shape_, kPadding);
  side.n_batches =
      static_cast<int>((side.windows.size() + static_cast<std::size_t>(shape_.n_sequences) - 1) /
                       static_cast<std::size_t>(shape_.n_sequences));
}

JudgedBatch VerdictTexts::batch(std::int64_t number) {
  if (!can_train()) throw Error(kOperation, path_.string(), "texts to learn from", "none");
  return judged(training_, number);
}

JudgedBatch VerdictTexts::held_out_batch(std::int64_t number) { return judged(held_out_, number); }

JudgedBatch VerdictTexts::judged(const Side& side, std::int64_t number) const {
  JudgedBatch judged;
  judged.batch = side.source->batch(number);
  const auto n_kept = static_cast<std::size_t>(reader_.format()->n_kept);
  judged.n_kept = static_cast<int>(n_kept);
  for (int sequence = 0; sequence < judged.batch.n_sequences; ++sequence) {
    const auto example =
        static_cast<std::size_t>(judged.batch.examples[static_cast<std::size_t>(sequence)]);
    const Window& window = side.windows[example];
    const LoggedText& text = *window.text;
    for (int place = window.n_prompt; place < window.end - window.begin; ++place) {
      judged.places.push_back(std::int64_t{sequence} * judged.batch.length + place);
    }
    const auto first = static_cast<std::size_t>(window.begin + window.n_prompt - text.n_prompt);
    const auto n_rows = static_cast<std::size_t>(window.end - window.begin - window.n_prompt);
    const auto take = [&](const auto& from, auto& to, std::size_t width) {
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(first * width);
      to.insert(to.end(), begin, begin + static_cast<std::ptrdiff_t>(n_rows * width));
    };
    take(text.kept_ids, judged.kept_ids, n_kept);
    take(text.kept_logprobs, judged.kept_logprobs, n_kept);
    take(text.rest_logprobs, judged.rest_logprobs, 1);
  }
  return judged;
}

}  // namespace outrider::train
