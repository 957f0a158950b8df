// How a grammar reads a text byte by byte, all ways of reading it at once.
//
// A way to read is a position that waits for a byte, and the stack of positions to go on from once
// its rule ends. Stacks share what they have in common: a frame is the set of all that may lie on
// top of the stack of a rule (where to go on, a count of repetitions, the frame below). Calls of a
// rule at one place of the text share one frame, as in Tomita's graph-structured stack, so that the
// number of ways is bounded by the grammar and the length of the text, however ambiguous it is. A
// call that is the last thing its rule does leaves no frame behind: lists written by recursion on
// the right do not nest.
//
// Frames and states are kept once each and never change, so that going on from one state in many
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

  // A state of another automaton of the same grammar, in this one's own numbers.
  int take_over(const ByteAutomaton& other, int state);

  static constexpr int kDead = -1;  // no text of the language begins so
  int start() const { return start_; }
  // The state behind one more byte, or kDead.
  int step(int state, std::uint8_t byte) {
    const State& from = states_[static_cast<std::size_t>(state)];
    const std::uint8_t kind = tables_[static_cast<std::size_t>(from.table)].kinds[byte];
    const std::int32_t next = next_[from.first_next + kind];
    return next != kUnknown ? next : follow(state, byte, kind);
  }
  // Whether the text may end there.
  bool accepts(int state) const { return states_[static_cast<std::size_t>(state)].accepts; }
  // The byte that must follow, or -1 where there are several, none, or the text may end.
  int only_byte(int state) const;
  // A state that goes on in the same way for n_bytes more bytes: counts of repetitions are the same
  // for all states that are that far from where counts matter. Calls name the same n_bytes.
  int alike(int state, int n_bytes);

  // Why steps since allow_steps() are kDead: a limit that was met. Empty: none was.
  const std::string& failure() const { return failure_; }
  // Whether some way was dropped because it nested too deeply.
  bool met_nesting_limit() const { return met_nesting_limit_; }
  // From now on, so many steps may be taken (limits.h) before it fails; earlier failures are
  // forgotten.
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
  struct Top {  // a way to read: a position of bytes, or that of acceptance
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
    std::size_t first_next = 0;  // in next_, one for each kind of byte
    std::int32_t table = 0;
    bool accepts = false;
  };
  // Bytes that no position of a state tells apart are of one kind.
  struct Table {
    std::array<std::uint8_t, 256> kinds;
    std::vector<std::int32_t> next;  // of each kind: kDead or kUnknown
    int only_byte = -1;              // that is not dead
  };
  // A rule that is called while the ways to go on are looked for: its frame as it comes to be.
  struct Call {
    std::vector<Entry> entries;
    std::vector<std::int32_t> same_as;  // frames, all of whose entries it has as well
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

  // Of one step. Frames below 0 are calls: ~index.
  std::int64_t n_steps_ = 0;
  bool accepts_ = false;
  std::vector<Entry> work_;
  FlatSet<Entry> seen_;
  std::vector<Call> calls_;  // the first n_calls_ are in use
  std::size_t n_calls_ = 0;
  std::vector<std::int32_t> call_of_rule_;  // of this step, or -1
  std::vector<std::int32_t> called_;        // rules
  std::vector<std::int32_t> waiting_;       // calls whose frames are wanted
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
