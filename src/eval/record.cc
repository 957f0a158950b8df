#include "eval/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "eval/json_text.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Members of a record's "stats", with the numbers behind them.
template <typename AnyEffort, typename Visit>
void visit_effort(AnyEffort& effort, Visit visit) {
  visit("prompt_tokens", effort.prompt_tokens);
  visit("emitted", effort.emitted);
  visit("target_passes", effort.target_passes);
  visit("drafter_passes", effort.drafter_passes);
  visit("drafted", effort.drafted);
  visit("accepted", effort.accepted);
  visit("rejected", effort.rejected);
  visit("rule_kl", effort.rule_kl);
  visit("rule_tv", effort.rule_tv);
  visit("deferral", effort.deferral);
  visit("prefill_seconds", effort.prefill_seconds);
  visit("decode_seconds", effort.decode_seconds);
  visit("draft_seconds", effort.draft_seconds);
  visit("verify_seconds", effort.verify_seconds);
}

std::string brief(const ordered_json& value) {
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return text;
}

// The first difference, as a path of members with what stands on either side.
struct Difference {
  std::string where;
  ordered_json wanted;
  ordered_json found;
};

bool differs(const ordered_json& wanted, const ordered_json& found, const std::string& where,
             Difference& out) {
  if (wanted.is_object() && found.is_object()) {
    for (const auto* side : {&wanted, &found}) {
      for (const auto& entry : side->items()) {
        const std::string inner = where.empty() ? entry.key() : where + "." + entry.key();
        const ordered_json one = wanted.value(entry.key(), ordered_json());
        const ordered_json other = found.value(entry.key(), ordered_json());
        if (differs(one, other, inner, out)) return true;
      }
    }
    return false;
  }
  if (wanted == found) return false;
  out = {.where = where, .wanted = wanted, .found = found};
  return true;
}

}  // namespace

void Effort::add(const Effort& other) {
  const auto add_to = [](auto& sum, const auto& term) { sum += term; };
  add_to(prompt_tokens, other.prompt_tokens);
  add_to(emitted, other.emitted);
  add_to(target_passes, other.target_passes);
  add_to(drafter_passes, other.drafter_passes);
  add_to(drafted, other.drafted);
  add_to(accepted, other.accepted);
  add_to(rejected, other.rejected);
  add_to(rule_kl, other.rule_kl);
  add_to(rule_tv, other.rule_tv);
  add_to(deferral, other.deferral);
  add_to(prefill_seconds, other.prefill_seconds);
  add_to(decode_seconds, other.decode_seconds);
  add_to(draft_seconds, other.draft_seconds);
  add_to(verify_seconds, other.verify_seconds);
}

void Effort::add(const GenerateStatistics& statistics, std::size_t n_prompt_tokens) {
  add({.prompt_tokens = static_cast<std::int64_t>(n_prompt_tokens),
       .emitted = statistics.emitted,
       .target_passes = statistics.target_passes,
       .drafter_passes = statistics.drafter_passes,
       .drafted = statistics.drafted,
       .accepted = statistics.accepted,
       .rejected = statistics.rejected,
       .rule_kl = statistics.rule_kl,
       .rule_tv = statistics.rule_tv,
       .deferral = statistics.deferral_rate * static_cast<double>(statistics.emitted),
       .prefill_seconds = statistics.prefill_seconds,
       .decode_seconds = statistics.decode_seconds,
       .draft_seconds = statistics.draft_seconds,
       .verify_seconds = statistics.verify_seconds});
}

std::string to_line(const Record& record) {
  ordered_json line;
  line["item"] = record.number;
  line["place"] = record.place;
  if (!record.slice.empty()) line["slice"] = record.slice;
  line["texts"] = record.texts;
  line["finishes"] = record.finishes;
  line["references"] = record.references;
  line["scores"] = record.scores;
  line["counts"] = record.counts;
  ordered_json& stats = line["stats"];
  visit_effort(record.effort, [&](const char* name, const auto& value) { stats[name] = value; });
  return json_text(line);
}

Record parse_record(std::string_view line, std::string_view place) {
  try {
    const json value = json::parse(line);
    Record record;
    record.number = value.at("item").get<int>();
    record.place = value.at("place").get<std::string>();
    record.slice = value.value("slice", "");
    record.texts = value.at("texts").get<std::vector<std::string>>();
    record.finishes = value.at("finishes").get<std::vector<std::string>>();
    record.references = value.at("references").get<std::vector<std::string>>();
    record.counts = value.at("counts").get<std::map<std::string, std::vector<double>>>();
    for (const auto& entry : value.at("scores").items()) {
      record.scores[entry.key()] = entry.value().is_number()
                                       ? entry.value().get<double>()
                                       : std::numeric_limits<double>::quiet_NaN();
    }
    const json& stats = value.at("stats");
    visit_effort(record.effort, [&](const char* name, auto& out) {
      const json& number = stats.at(name);
      // The one figure that can be infinite, which JSON writes as null.
      if (number.is_null() && std::string_view(name) == "rule_kl") {
        if constexpr (std::is_floating_point_v<std::decay_t<decltype(out)>>) {
          out = std::numeric_limits<double>::infinity();
        }
        return;
      }
      number.get_to(out);
    });
    return record;
  } catch (const json::exception&) {
    std::string got(line.substr(0, 60));
    throw Error("read records", place, "a record", got.empty() ? "an empty line" : got);
  }
}

RecordFile::RecordFile(std::filesystem::path path, const ordered_json& configuration)
    : path_(std::move(path)) {
  descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw Error("open records", path_.string(), std::strerror(errno));
  try {
    struct stat state = {};
    if (::fstat(descriptor_, &state) != 0 || !S_ISREG(state.st_mode)) {
      throw Error("open records", path_.string(), "a regular file", "a device or a pipe");
    }
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      throw Error("open records", path_.string(), "no other process that writes it", "one");
    }
    read(configuration);
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RecordFile::~RecordFile() { ::close(descriptor_); }

void RecordFile::read(const ordered_json& configuration) {
  std::string text;
  std::vector<char> buffer(1 << 16);
  ssize_t n_read = 0;
  while ((n_read = ::read(descriptor_, buffer.data(), buffer.size())) != 0) {
    if (n_read < 0) throw Error("read records", path_.string(), std::strerror(errno));
    text.append(buffer.data(), static_cast<std::size_t>(n_read));
  }
  // As it is written: a path or a flag may hold bytes that JSON cannot.
  const std::string head_line =
      json_text({{"format", "outrider-eval"}, {"version", 1}, {"run", configuration}});
  const ordered_json head = ordered_json::parse(head_line);
  // What stands behind the last newline was being written when its writer ended.
  const std::size_t last = text.rfind('\n');
  if (last == std::string::npos && !head_line.starts_with(text)) {
    throw Error("read records", path_.string(), "records of outrider eval", "another file");
  }
  text.resize(last == std::string::npos ? 0 : last + 1);
  std::string_view rest = text;
  for (int line = 1; !rest.empty(); ++line) {
    const std::string_view bytes = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(bytes.size() + 1);
    const std::string place = fmt::format("{}, line {}", path_.string(), line);
    if (line > 1) {
      Record record = parse_record(bytes, place);
      done_.insert_or_assign(record.number, std::move(record));
      continue;
    }
    const ordered_json found = ordered_json::parse(bytes, nullptr, false);
    if (!found.is_object() || found.value("format", ordered_json()) != "outrider-eval") {
      throw Error("read records", place, "records of outrider eval", "another file");
    }
    Difference difference;
    if (differs(head, found, "", difference)) {
      throw Error(
          "read records", path_.string(),
          fmt::format("records of this run ({} {})", difference.where, brief(difference.wanted)),
          fmt::format("those of another ({})", brief(difference.found)));
    }
  }
  n_bytes_ = static_cast<std::int64_t>(text.size());
  // Nothing is touched until all of it is known to be ours.
  if (::ftruncate(descriptor_, n_bytes_) != 0) {
    throw Error("write records", path_.string(), std::strerror(errno));
  }
  if (n_bytes_ == 0) write_line(head_line);
}

void RecordFile::append(const Record& record) { write_line(to_line(record)); }

void RecordFile::write_line(const std::string& line) {
  std::string bytes = line;
  bytes += '\n';
  std::size_t n_written = 0;
  while (n_written < bytes.size()) {
    const ssize_t n = ::pwrite(descriptor_, bytes.data() + n_written, bytes.size() - n_written,
                               n_bytes_ + static_cast<std::int64_t>(n_written));
    if (n >= 0) {
      n_written += static_cast<std::size_t>(n);
    } else if (errno != EINTR) {
      const int error = errno;
      // Half a line would be dropped by the next run, too; but readers need not meet it.
      if (::ftruncate(descriptor_, n_bytes_) != 0) errno = error;
      throw Error("write records", path_.string(), std::strerror(error));
    }
  }
  n_bytes_ += static_cast<std::int64_t>(bytes.size());
}

}  // namespace outrider::eval
