// SPDX-License-Identifier: Apache-2.0
#include "eval/record.h"

#include <limits>
#include <type_traits>
#include <utility>

#include "eval/tasks/json_text.h"
#include "outrider/error.h"

namespace outrider::eval {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Members of a record's "stats" and their values.
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
      // The only figure that can be infinite, which JSON writes as null.
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
    : file_(std::move(path), "outrider-eval", configuration,
            [this](std::string_view line, std::string_view place) {
              Record record = parse_record(line, place);
              done_.insert_or_assign(record.number, std::move(record));
            }) {}

void RecordFile::append(const Record& record) { file_.append(to_line(record)); }

}  // namespace outrider::eval
