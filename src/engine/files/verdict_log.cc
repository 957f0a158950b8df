// SPDX-License-Identifier: Apache-2.0
#include "outrider/verdict_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "io/verdict_log.h"
#include "outrider/error.h"
#include "tokenizer/same_vocabulary.h"

namespace outrider {
namespace {

VerdictLogFormat format_for(const Model& target, const VerdictLogOptions& options) {
  constexpr const char* kOperation = "open verdict log";
  if (options.top_k < 1) {
    throw UsageError(kOperation, "top_k", "1 or more", fmt::format("{}", options.top_k));
  }
  const int n_vocabulary = target.summary().vocabulary_size;
  const VerdictLogFormat format{.n_vocabulary = n_vocabulary,
                                .n_kept = std::min(options.top_k, n_vocabulary),
                                .vocabulary = vocabulary_id(target.tokenizer())};
  // The longest prompt and one generated token must fit into a segment; otherwise whole texts would
  // silently not be recorded.
  const std::int64_t least =
      kVerdictSegments *
      (kVerdictSegmentHeaderBytes + record_bytes(format, target.summary().context_length, 1));
  if (options.max_bytes < least) {
    throw UsageError(
        kOperation, "max_bytes",
        fmt::format("at least {} for texts of {} tokens", least, target.summary().context_length),
        fmt::format("{}", options.max_bytes));
  }
  return format;
}

}  // namespace

struct VerdictLog::State {
  const Model* target;
  std::mutex mutex;  // guards the members below
  VerdictLogWriter writer;
  std::string failure = {};
};

VerdictLog::VerdictLog(const Model& target, const std::filesystem::path& directory,
                       const VerdictLogOptions& options)
    : state_(new State{.target = &target,
                       .mutex = {},
                       .writer = {directory, format_for(target, options), options.max_bytes}}) {}
VerdictLog::~VerdictLog() = default;

std::string VerdictLog::failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->failure;
}

bool VerdictLog::belongs_to(const Model& target) const { return state_->target == &target; }

const VerdictLogFormat& VerdictLog::format() const { return state_->writer.format(); }

std::int64_t VerdictLog::max_generated(std::int64_t n_prompt) const {
  return state_->writer.max_generated(n_prompt);
}

void VerdictLog::append(const LoggedText& text) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->failure.empty()) return;
  try {
    state_->writer.append(text);
  } catch (const std::exception& error) {
    state_->failure = error.what();
  }
}

}  // namespace outrider
