// SPDX-License-Identifier: Apache-2.0
// Reads a text byte by byte by a grammar, in all possible ways at once.
//
// A way of reading is a position that waits for a byte, and the stack of positions to continue from
// when its rule ends. Stacks share common parts: a frame is the set of all entries that may be on
// top of a rule's stack (the position to continue from, a count of repetitions, the frame below).
// Calls of a rule at one place of the text share one frame, as in Tomita's graph-structured stack.
// So the number of ways is bounded by the grammar and the length of the text, however ambiguous the
// grammar is. A tail call leaves no frame: lists written by right recursion do not nest.
//
// Frames and states are stored once each and never change, so continuing one state in many
// directions (a tree of drafts) costs nothing. Not thread-safe.
#ifndef OUTRIDER_GRAMMAR_BYTE_AUTOMATON_H_
#define OUTRIDER_GRAMMAR_BYTE_AUTOMATON_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "grammar/flat_set.h"
#include "grammar/grammar.h"
#include "grammar/span_table.h"

namespace outrider {

class ByteAutomaton {
 public:
  explicit ByteAutomaton(std::shared_ptr<const CompiledGrammar> grammar);

  // Translates a state of another automaton of the same grammar to this one's numbers.
  int take_over(const ByteAutomaton& other, int state);

  static constexpr int kDead = -1;  // no text of the language begins like this
  int start() const { return start_; }
  // The state after one more byte, or kDead.
  int step(int state, std::uint8_t byte) {
    const State& from = states_[static_cast<std::size_t>(state)];
    const std::uint8_t kind = tables_[static_cast<std::size_t>(from.table)].kinds[byte];
    const std::int32_t next = next_[from.first_next + kind];
    return next != kUnknown ? next : follow(state, byte, kind);
  }
  // Whether the text may end there.
  bool accepts(int state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  // The only byte that may follow; -1 if there are several or none, or the text may end.
  int only_byte(int state) const;
  // A state that behaves the same for n_bytes more bytes. It merges counts of repetitions that
  // cannot matter within these bytes. All calls must use the same n_bytes.
  int alike(int state, int n_bytes);

  // The limit that made steps since allow_steps() kDead; empty: none.
  const std::string& failure() const { return failure_; }
  // Whether some way was dropped because it nested too deeply.
  bool met_nesting_limit() const { return met_nesting_limit_; }
  // Allows n_steps further steps (limits.h) before it fails; clears earlier failures.
  void allow_steps(std::int64_t n_steps) {
    n_steps_left_ = n_steps;
    failure_.clear();
  }
  const std::shared_ptr<const CompiledGrammar>& grammar() const { return grammar_; }
  std::size_t n_states() const { return states_.size(); }
  std::size_t n_frame_entries() const { return frames_.n_items(); }

  struct Entry {  // of a frame
    std::int32_t position;
    std::int32_t count;
    std::int32_t frame;
    bool operator==(const Entry&) const = default;
    auto operator<=>(const Entry&) const = default;
  };
  struct Top {  // a way of reading: a position of bytes, or that of acceptance
    std::int32_t position;
    std::int32_t frame;
    bool operator==(const Top&) const = default;
    auto operator<=>(const Top&) const = default;
  };

 private:
  static constexpr std::int32_t kUnknown = -2;
  static constexpr std::int32_t kAccept = -1;   // position of the entry below the root's frame
  static constexpr std::int32_t kTooDeep = -1;  // frame

  struct State {
    std::size_t first_next = 0;  // in next_, one entry for each kind of byte
    std::int32_t table = 0;
    bool accepts = false;
  };
  // Bytes that no position of a state distinguishes are of one kind.
  struct Table {
    std::array<std::uint8_t, 256> kinds;
    std::vector<std::int32_t> next;  // for each kind: kDead or kUnknown
    int only_byte = -1;              // the only one that is not dead
  };
  // A rule that is called during the search for continuations, with the frame under construction.
  struct Call {
    std::vector<Entry> entries;
    std::vector<std::int32_t> same_as;  // frames whose entries it includes
    std::int32_t frame = kUnknown;      // once it is complete
  };

  std::int32_t follow(int state, std::uint8_t byte, std::uint8_t kind);
  void add(const Entry& entry);
  void look_from(const Entry& entry);
  void call(int rule, const Entry& back);
  void return_from(std::int32_t frame);
  std::int32_t complete(std::int32_t frame);
  void close(std::size_t call);
  int finish_state();
  int intern_state(std::span<const Top> tops);
  int table_of(std::span<const Top> tops);
  std::int32_t frame_of(std::vector<Entry>& entries);
  std::int32_t alike_frame(std::int32_t frame, int n_bytes);
  void fail(const char* what, const char* expected);

  std::shared_ptr<const CompiledGrammar> grammar_;
  SpanTable<Entry> frames_;
  std::vector<std::int32_t> depths_;  // of frames
  std::vector<std::int32_t> alike_;   // of frames: see alike(), or kUnknown
  SpanTable<Top> tops_;               // of states
  std::vector<State> states_;
  std::vector<std::int32_t> next_;
  std::vector<Table> tables_;
  SpanTable<std::int32_t> table_keys_;  // the positions of each of tables_
  int start_ = kDead;
  std::string failure_;
  bool met_nesting_limit_ = false;
  std::int64_t n_steps_left_ = 0;

  // State of one step. Frames below 0 are calls: ~index.
  std::int64_t n_steps_ = 0;
  bool accepts_ = false;
  std::vector<Entry> work_;
  FlatSet<Entry> seen_;
  std::vector<Call> calls_;  // the first n_calls_ are in use
  std::size_t n_calls_ = 0;
  std::vector<std::int32_t> call_of_rule_;  // of this step, or -1
  std::vector<std::int32_t> called_;        // rules
  std::vector<std::int32_t> waiting_;       // calls whose frames are needed
  std::vector<Top> found_;
  std::vector<std::int32_t> key_;
};

constexpr std::uint64_t hash_of(const ByteAutomaton::Entry& entry) {
  const std::uint64_t mixed = hash_of(entry.position) + 31 * hash_of(entry.count) * 7;
  return (mixed ^ (mixed >> 31)) + 127 * hash_of(entry.frame);
}
constexpr std::uint64_t hash_of(const ByteAutomaton::Top& top) {
  const std::uint64_t mixed = hash_of(top.position);
  return (mixed ^ (mixed >> 31)) + 127 * hash_of(top.frame);
}

}  // namespace outrider

#endif  // OUTRIDER_GRAMMAR_BYTE_AUTOMATON_H_
