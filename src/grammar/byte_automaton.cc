// SPDX-License-Identifier: Apache-2.0
#include "grammar/byte_automaton.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "grammar/limits.h"

namespace outrider {

ByteAutomaton::ByteAutomaton(std::shared_ptr<const CompiledGrammar> grammar)
    : grammar_(std::move(grammar)),
      call_of_rule_(static_cast<std::size_t>(grammar_->n_rules()), -1) {
  std::vector<Entry> below = {{kAccept, 0, 0}};
  const std::int32_t bottom = frame_of(below);
  allow_steps(kMaxSteps);
  seen_.clear();
  add({grammar_->rule(grammar_->root()).start, 0, bottom});
  start_ = finish_state();
}

int ByteAutomaton::take_over(const ByteAutomaton& other, int state) {
  met_nesting_limit_ = met_nesting_limit_ || other.met_nesting_limit_;
  // A frame's number is higher than those of the frames below it.
  std::vector<bool> wanted(static_cast<std::size_t>(other.frames_.size()), false);
  const std::span<const Top> tops = other.tops_[state];
  for (const Top& top : tops) {
    if (top.position != kAccept) wanted[static_cast<std::size_t>(top.frame)] = true;
  }
  for (int frame = other.frames_.size(); frame-- > 0;) {
    if (!wanted[static_cast<std::size_t>(frame)]) continue;
    for (const Entry& entry : other.frames_[frame]) {
      if (entry.position != kAccept) wanted[static_cast<std::size_t>(entry.frame)] = true;
    }
  }
  std::vector<std::int32_t> numbers(wanted.size(), 0);
  std::vector<Entry> entries;
  for (int frame = 0; frame < other.frames_.size(); ++frame) {
    if (!wanted[static_cast<std::size_t>(frame)]) continue;
    const std::span<const Entry> there = other.frames_[frame];
    entries.assign(there.begin(), there.end());
    for (Entry& entry : entries) entry.frame = numbers[static_cast<std::size_t>(entry.frame)];
    numbers[static_cast<std::size_t>(frame)] = frame_of(entries);
  }
  std::vector<Top> own(tops.begin(), tops.end());
  for (Top& top : own) top.frame = numbers[static_cast<std::size_t>(top.frame)];
  std::sort(own.begin(), own.end());
  return intern_state(own);
}

int ByteAutomaton::alike(int state, int n_bytes) {
  const std::span<const Top> tops = tops_[state];
  std::vector<Top> own(tops.begin(), tops.end());
  for (Top& top : own) {
    if (top.position != kAccept) top.frame = alike_frame(top.frame, n_bytes);
  }
  std::sort(own.begin(), own.end());
  own.erase(std::unique(own.begin(), own.end()), own.end());
  return intern_state(own);
}

std::int32_t ByteAutomaton::alike_frame(std::int32_t frame, int n_bytes) {
  const auto known = [this](std::int32_t other) -> std::int32_t& {
    if (alike_.size() <= static_cast<std::size_t>(other)) {
      alike_.resize(static_cast<std::size_t>(frames_.size()), kUnknown);
    }
    return alike_[static_cast<std::size_t>(other)];
  };
  std::vector<std::int32_t> wanted = {frame};
  std::vector<Entry> entries;
  while (!wanted.empty()) {
    const std::int32_t next = wanted.back();
    const std::size_t n_before = wanted.size();
    const std::span<const Entry> there = frames_[next];
    for (const Entry& entry : there) {
      if (entry.position == kAccept || known(entry.frame) != kUnknown) continue;
      wanted.push_back(entry.frame);
    }
    if (wanted.size() > n_before) continue;  // frames below come first
    wanted.pop_back();
    entries.assign(there.begin(), there.end());
    for (Entry& entry : entries) {
      if (entry.position == kAccept) continue;
      entry.frame = known(entry.frame);
      const Position& position = grammar_->position(entry.position);
      if (position.kind != Position::Kind::repeat) continue;
      // Each repetition of the body reads at least one byte.
      const std::int64_t max_reached = std::int64_t{entry.count} + n_bytes + 1;
      if (max_reached < position.min) {
        entry.count = 0;
      } else if (entry.count >= position.min && max_reached < position.max) {
        entry.count = position.min;
      }
    }
    std::sort(entries.begin(), entries.end());
    entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
    const std::int32_t made = frame_of(entries);
    known(next) = made;
  }
  return known(frame);
}

int ByteAutomaton::only_byte(int state) const {
  const State& at = states_[static_cast<std::size_t>(state)];
  return at.accepts ? -1 : tables_[static_cast<std::size_t>(at.table)].only_byte;
}

std::int32_t ByteAutomaton::follow(int state, std::uint8_t byte, std::uint8_t kind) {
  if (!failure_.empty()) return kDead;
  n_steps_ = 0;
  accepts_ = false;
  seen_.clear();
  const std::span<const Top> tops = tops_[state];
  n_steps_left_ -= static_cast<std::int64_t>(tops.size());
  for (const Top& top : tops) {
    if (top.position == kAccept) continue;
    const Position& position = grammar_->position(top.position);
    if (grammar_->set(position.other).test(byte)) add({position.next, 0, top.frame});
  }
  const int next = finish_state();
  if (failure_.empty()) next_[states_[static_cast<std::size_t>(state)].first_next + kind] = next;
  return next;
}

void ByteAutomaton::add(const Entry& entry) {
  if (entry.position != kAccept && !grammar_->position(entry.position).alive) return;
  if (seen_.insert(entry)) work_.push_back(entry);
}

// Finds all positions that read the next byte, and makes a state of them.
int ByteAutomaton::finish_state() {
  while (!work_.empty() && failure_.empty()) {
    const Entry entry = work_.back();
    work_.pop_back();
    if (++n_steps_ > kMaxSteps) fail("ambiguity", "fewer ways to read a text");
    look_from(entry);
  }
  n_steps_left_ -= n_steps_;
  if (n_steps_left_ < 0) fail("ambiguity", "less to be tried for one token");
  for (Top& top : found_) top.frame = complete(top.frame);
  std::erase_if(found_, [](const Top& top) { return top.frame == kTooDeep; });
  if (accepts_) found_.push_back({kAccept, 0});
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  const int state = found_.empty() || !failure_.empty() ? kDead : intern_state(found_);
  // Reset for the next step.
  for (const std::int32_t rule : called_) call_of_rule_[static_cast<std::size_t>(rule)] = -1;
  called_.clear();
  work_.clear();
  found_.clear();
  n_calls_ = 0;
  accepts_ = false;
  return state;
}

void ByteAutomaton::look_from(const Entry& entry) {
  if (entry.position == kAccept) {
    accepts_ = true;
    return;
  }
  const Position& position = grammar_->position(entry.position);
  switch (position.kind) {
    case Position::Kind::bytes:
      found_.push_back({entry.position, entry.frame});
      return;
    case Position::Kind::either:
      add({position.next, 0, entry.frame});
      add({position.other, 0, entry.frame});
      return;
    case Position::Kind::call:
      call(position.other, {position.next, 0, entry.frame});
      // Nullable parts are skipped here; a call never returns at once.
      if (grammar_->rule(position.other).nullable) add({position.next, 0, entry.frame});
      return;
    case Position::Kind::repeat: {
      if (entry.count >= position.min) add({position.next, 0, entry.frame});
      const std::int32_t count = entry.count + 1;
      if (!grammar_->rule(position.other).alive) return;
      if (position.max == kUnlimited) {  // counts above `min` are equivalent
        call(position.other, {entry.position, std::min(count, position.min), entry.frame});
      } else if (count < position.max) {
        call(position.other, {entry.position, count, entry.frame});
      } else if (count == position.max) {
        call(position.other, {position.next, 0, entry.frame});
      }
      return;
    }
    case Position::Kind::end:
      return_from(entry.frame);
      return;
  }
}

void ByteAutomaton::call(int rule, const Entry& back) {
  std::int32_t& index = call_of_rule_[static_cast<std::size_t>(rule)];
  if (index < 0) {
    index = static_cast<std::int32_t>(n_calls_++);
    if (calls_.size() < n_calls_) calls_.emplace_back();
    Call& fresh = calls_[static_cast<std::size_t>(index)];
    fresh.entries.clear();
    fresh.same_as.clear();
    fresh.frame = kUnknown;
    called_.push_back(rule);
    add({grammar_->rule(rule).start, 0, ~index});
  }
  Call& call = calls_[static_cast<std::size_t>(index)];
  const bool is_last = grammar_->position(back.position).kind == Position::Kind::end;
  if (is_last) {
    call.same_as.push_back(back.frame);
  } else {
    call.entries.push_back(back);
  }
}

void ByteAutomaton::return_from(std::int32_t frame) {
  if (frame < 0) return;  // called in this step
  const std::span<const Entry> entries = frames_[frame];
  n_steps_ += static_cast<std::int64_t>(entries.size());
  for (const Entry& entry : entries) add(entry);
}

// Makes the frame of a call's entries once all are known. A call depends on the calls that made it,
// and never in a cycle, since there is no left recursion.
std::int32_t ByteAutomaton::complete(std::int32_t frame) {
  if (frame >= 0) return frame;
  const auto is_open = [this](std::int32_t other) {
    return other < 0 && calls_[static_cast<std::size_t>(~other)].frame == kUnknown;
  };
  waiting_.assign(1, frame);
  while (!waiting_.empty() && failure_.empty()) {
    const std::int32_t next = waiting_.back();
    const Call& call = calls_[static_cast<std::size_t>(~next)];
    const std::size_t n_before = waiting_.size();
    if (call.frame == kUnknown) {
      for (const Entry& entry : call.entries) {
        if (is_open(entry.frame)) waiting_.push_back(entry.frame);
      }
      for (const std::int32_t same : call.same_as) {
        if (is_open(same)) waiting_.push_back(same);
      }
    }
    if (waiting_.size() > n_before) continue;  // those come first
    waiting_.pop_back();
    if (call.frame == kUnknown) close(static_cast<std::size_t>(~next));
  }
  return failure_.empty() ? calls_[static_cast<std::size_t>(~frame)].frame : kTooDeep;
}

// Makes a call's frame; the frames that it depends on exist.
void ByteAutomaton::close(std::size_t index) {
  Call& call = calls_[index];
  const auto made = [this](std::int32_t frame) {
    return frame >= 0 ? frame : calls_[static_cast<std::size_t>(~frame)].frame;
  };
  std::vector<Entry>& entries = call.entries;
  for (Entry& entry : entries) entry.frame = made(entry.frame);
  std::erase_if(entries, [](const Entry& entry) { return entry.frame == kTooDeep; });
  for (const std::int32_t same : call.same_as) {
    const std::int32_t other = made(same);
    if (other == kTooDeep) continue;
    const std::span<const Entry> others = frames_[other];
    n_steps_left_ -= static_cast<std::int64_t>(others.size());
    entries.insert(entries.end(), others.begin(), others.end());
  }
  std::sort(entries.begin(), entries.end());
  entries.erase(std::unique(entries.begin(), entries.end()), entries.end());
  call.frame = entries.empty() ? kTooDeep : frame_of(entries);
}

std::int32_t ByteAutomaton::frame_of(std::vector<Entry>& entries) {
  std::sort(entries.begin(), entries.end());
  std::int32_t depth = 0;
  for (const Entry& entry : entries) {
    if (entry.position == kAccept) continue;
    depth = std::max(depth, depths_[static_cast<std::size_t>(entry.frame)] + 1);
  }
  if (depth > kDeepestNesting) {
    met_nesting_limit_ = true;
    return kTooDeep;
  }
  const std::int32_t frame = frames_.intern(entries);
  if (static_cast<std::size_t>(frame) == depths_.size()) depths_.push_back(depth);
  if (frames_.n_items() > kMaxFrameEntries) fail("memory", "fewer ways to read a text");
  return frame;
}

int ByteAutomaton::intern_state(std::span<const Top> tops) {
  const int table = table_of(tops);
  const int state = tops_.intern(tops);
  if (static_cast<std::size_t>(state) < states_.size()) return state;
  const std::vector<std::int32_t>& next = tables_[static_cast<std::size_t>(table)].next;
  states_.push_back(
      {.first_next = next_.size(), .table = table, .accepts = tops.front().position == kAccept});
  next_.insert(next_.end(), next.begin(), next.end());
  if (states_.size() > kMaxStates) fail("memory", "fewer states");
  return state;
}

// Depends on the positions alone: a state's stacks do not matter before its rules end.
int ByteAutomaton::table_of(std::span<const Top> tops) {
  key_.clear();
  for (const Top& top : tops) {
    if (top.position != kAccept && (key_.empty() || key_.back() != top.position)) {
      key_.push_back(top.position);
    }
  }
  const int index = table_keys_.intern(key_);
  if (static_cast<std::size_t>(index) < tables_.size()) return index;
  // Splits by one position after another.
  Table table;
  table.kinds.fill(0);
  int n_kinds = 1;
  ByteSet any;
  for (const std::int32_t position : key_) {
    const ByteSet& set = grammar_->set(grammar_->position(position).other);
    any |= set;
    std::array<int, 512> renamed;
    renamed.fill(-1);
    n_kinds = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      int& name = renamed[2 * table.kinds[byte] + (set.test(byte) ? 1 : 0)];
      if (name < 0) name = n_kinds++;
      table.kinds[byte] = static_cast<std::uint8_t>(name);
    }
  }
  table.next.assign(static_cast<std::size_t>(n_kinds), kDead);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    if (!any.test(byte)) continue;
    table.next[table.kinds[byte]] = kUnknown;
    if (any.count() == 1) table.only_byte = static_cast<int>(byte);
  }
  tables_.push_back(std::move(table));
  return index;
}

void ByteAutomaton::fail(const char* what, const char* expected) {
  if (failure_.empty()) failure_ = fmt::format("{}: expected {}, got too many", what, expected);
}

}  // namespace outrider
