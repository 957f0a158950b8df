// SPDX-License-Identifier: Apache-2.0
#include "outrider/round_trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "outrider/error.h"

namespace outrider {
namespace {

constexpr const char* kOperation = "write trace";

// A track of rounds has the number of its process, which viewers put first. Tracks of texts begin
// here, beyond any process's number.
constexpr std::int64_t kFirstTextTrack = 1000;

// Quoted; invalid UTF-8 is replaced.
std::string quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

// The file shared by all batches. Events are written whole or not at all.
class RoundTrace::File {
 public:
  explicit File(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw Error(kOperation, path.string(), std::strerror(errno));
  }
  ~File() {
    if (n_events_bytes_ > 0) write("\n]\n");
    ::close(descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  // Appends events, each preceded by ",\n".
  void append(std::string_view events) {
    const std::lock_guard lock(mutex_);
    if (events.empty()) return;
    if (n_events_bytes_ == 0) {
      (void)!::ftruncate(descriptor_, 0);  // an earlier trace; a pipe has none
      write("[");
      events.remove_prefix(1);  // the comma
    }
    write(events);
    n_events_bytes_ += events.size();
  }

  std::string failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

  // The number of a batch in the file, from 1.
  int add_batch() {
    const std::lock_guard lock(mutex_);
    return ++n_batches_;
  }

  RoundTime began() const { return began_; }

 private:
  void write(std::string_view bytes) {
    if (!failure_.empty()) return;
    const ::off_t begin = ::lseek(descriptor_, 0, SEEK_CUR);
    while (!bytes.empty()) {
      const ::ssize_t n_written = ::write(descriptor_, bytes.data(), bytes.size());
      if (n_written >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(n_written));
      } else if (errno != EINTR) {
        failure_ = Error(kOperation, path_.string(), std::strerror(errno)).what();
        // Viewers stop at half an event, so it is cut off. A pipe keeps it.
        if (begin >= 0) (void)!::ftruncate(descriptor_, begin);
        return;
      }
    }
  }

  std::filesystem::path path_;
  int descriptor_;
  RoundTime began_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;  // guards the members below and the descriptor
  std::size_t n_events_bytes_ = 0;
  int n_batches_ = 0;
  std::string failure_;
};

// One batch's rounds as events. Called by the batch's thread.
class RoundTrace::BatchTrace final : public RoundObserver {
 public:
  BatchTrace(std::shared_ptr<File> file, std::string_view name)
      : file_(std::move(file)), process_(file_->add_batch()) {
    name_process(name);
    name_track(process_, "rounds", 0);
    flush();
  }

  void on_round(const RoundRecord& round) override {
    add_steps(round);
    for (const std::int64_t id : round.preempted) wait(id, round.began);
    for (const RoundText& text : round.texts) add_text(text, round);
    ++n_rounds_;
    flush();
  }

  void on_end(const EndedText& text) override {
    const auto at = texts_.find(text.id);
    Phase last = Phase::queue;
    RoundTime since = text.asked;
    if (at == texts_.end()) {
      name_text(text.id);
    } else {
      last = at->second.phase;
      since = at->second.since;
      texts_.erase(at);
    }
    leave(text.id, last, since, text.ended);
    if (text.failed) {
      add_event('i', track_of(text.id), text.ended, R"(,"name":"failed","s":"t")");
    }
    flush();
  }

 private:
  enum class Phase { queue, prefill, decode };
  struct Text {
    Phase phase = Phase::queue;
    RoundTime since = {};
  };

  static std::int64_t track_of(std::int64_t id) { return kFirstTextTrack + id; }
  static const char* name_of(Phase phase) { return phase == Phase::prefill ? "prefill" : "decode"; }

  // Microseconds with nanosecond digits.
  static std::string microseconds(std::chrono::steady_clock::duration time) {
    const auto ns = std::max<std::int64_t>(
        0, std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
    return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
  }

  // more: further members, each preceded by a comma.
  void add_event(char kind, std::int64_t track, RoundTime time, std::string_view more) {
    fmt::format_to(std::back_inserter(events_),
                   ",\n{{\"ph\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{}{}}}", kind, process_, track,
                   microseconds(time - file_->began()), more);
  }

  // args: members of the slice's arguments.
  void add_slice(std::int64_t track, std::string_view name, RoundTime begin, RoundTime end,
                 std::string_view args = {}) {
    add_event('X', track, begin,
              fmt::format(",\"dur\":{},\"name\":\"{}\",\"args\":{{{}}}", microseconds(end - begin),
                          name, args));
  }

  void name_process(std::string_view name) {
    fmt::format_to(std::back_inserter(events_),
                   ",\n{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\","
                   "\"args\":{{\"name\":{}}}}}",
                   process_, quoted(name));
  }

  // place: its order among the tracks of the process.
  void name_track(std::int64_t track, std::string_view name, std::int64_t place) {
    fmt::format_to(std::back_inserter(events_),
                   ",\n{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_name\","
                   "\"args\":{{\"name\":\"{2}\"}}}}"
                   ",\n{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_sort_index\","
                   "\"args\":{{\"sort_index\":{3}}}}}",
                   process_, track, name, place);
  }

  void name_text(std::int64_t id) { name_track(track_of(id), fmt::format("text {}", id), id + 1); }

  // A slice comes before those within it: viewers keep the order of events with equal times.
  void add_steps(const RoundRecord& round) {
    add_slice(process_, "round", round.began, round.ended, fmt::format("\"number\":{}", n_rounds_));
    add_slice(process_, "plan", round.began, round.planned);
    for (const RoundDraft& draft : round.drafts) {
      const std::string_view kind = draft.drafter.substr(0, draft.drafter.find(':'));
      add_slice(process_, fmt::format("draft {}", kind), draft.began, draft.ended,
                fmt::format("\"drafter\":{}", quoted(draft.drafter)));
    }
    std::string pass = fmt::format("\"rows\":{},\"prompt_rows\":{},\"texts\":{}", round.rows,
                                   round.prompt_rows, round.texts.size());
    if (round.experts_a_layer > 0) {
      pass += fmt::format(",\"experts\":{:.1f}", round.experts_a_layer);
    }
    add_slice(process_, "target pass", round.drafted, round.passed, pass);
    add_slice(process_, "verify", round.passed, round.verified);
    add_slice(process_, "commit", round.verified, round.ended);
  }

  void add_text(const RoundText& text, const RoundRecord& round) {
    const auto [at, is_new] = texts_.try_emplace(text.id, Text{Phase::queue, text.asked});
    if (is_new) name_text(text.id);
    Text& known = at->second;
    const Phase phase = text.prompt_rows > 0 ? Phase::prefill : Phase::decode;
    if (known.phase != phase) {
      leave(text.id, known.phase, known.since, round.began);
      known = {phase, round.began};
      add_event('B', track_of(text.id), round.began,
                fmt::format(",\"name\":\"{}\"", name_of(phase)));
    }
    const std::string args =
        phase == Phase::prefill
            ? fmt::format("\"number\":{},\"rows\":{}", n_rounds_, text.prompt_rows)
            : fmt::format(
                  "\"number\":{},\"drafted\":{},\"depth\":{},\"accepted\":{},\"emitted\":{}",
                  n_rounds_, text.drafted, text.depth, text.accepted, text.emitted);
    add_slice(track_of(text.id), "round", round.planned, round.ended, args);
  }

  // Ends a phase. A waiting phase is written only now, as its duration was unknown before.
  void leave(std::int64_t id, Phase phase, RoundTime since, RoundTime now) {
    if (phase == Phase::queue) {
      add_slice(track_of(id), "queue", since, now);
    } else {
      add_event('E', track_of(id), now, {});
    }
  }

  void wait(std::int64_t id, RoundTime now) {
    const auto at = texts_.find(id);
    if (at == texts_.end() || at->second.phase == Phase::queue) return;
    leave(id, at->second.phase, at->second.since, now);
    at->second = {Phase::queue, now};
  }

  void flush() {
    file_->append(events_);
    events_.clear();
  }

  std::shared_ptr<File> file_;
  int process_;
  std::int64_t n_rounds_ = 0;
  std::unordered_map<std::int64_t, Text> texts_;  // texts that have had a round and have not ended
  std::string events_;
};

RoundTrace::RoundTrace(const std::filesystem::path& path) : file_(std::make_shared<File>(path)) {}

std::shared_ptr<RoundObserver> RoundTrace::observer(std::string_view name) {
  return std::make_shared<BatchTrace>(file_, name);
}

std::string RoundTrace::failure() const { return file_->failure(); }

}  // namespace outrider
